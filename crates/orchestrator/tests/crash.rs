//! Servers that are killed or paused while they run, and two servers that receive the same calls. Acknowledged results
//! survive, calls that are not idempotent never run twice, and an unknown outcome is reported as unknown.
//!
//! `TOOLWRIGHT_KILLS` is the number of kills (200 by default), `TOOLWRIGHT_SEED` determines the calls.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "crash/guarantees.rs"]
mod guarantees;
#[path = "crash/instructions.rs"]
mod instructions;
#[path = "crash/killing.rs"]
mod killing;
#[path = "crash/ledger.rs"]
mod ledger;
#[path = "crash/log.rs"]
mod log;
#[path = "crash/pausing.rs"]
mod pausing;
#[path = "crash/plan.rs"]
mod plan;
#[path = "crash/process.rs"]
mod process;
#[path = "crash/racing_servers.rs"]
mod racing_servers;
#[path = "crash/support.rs"]
mod support;
#[path = "crash/tasks.rs"]
mod tasks;
#[path = "crash/worker.rs"]
mod worker;

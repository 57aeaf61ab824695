//! Servers that are killed in the middle of their work, and servers that work on the same calls at once. What was
//! acknowledged is there afterwards, nothing that must not be repeated runs twice, and whatever is not known is said to
//! be not known.
//!
//! `TOOLWRIGHT_KILLS` says how often a server is killed (200 unless said), `TOOLWRIGHT_SEED` which calls it is sent.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "crash/desk.rs"]
mod desk;
#[path = "crash/killing.rs"]
mod killing;
#[path = "crash/ledger.rs"]
mod ledger;
#[path = "crash/log.rs"]
mod log;
#[path = "crash/orders.rs"]
mod orders;
#[path = "crash/plan.rs"]
mod plan;
#[path = "crash/process.rs"]
mod process;
#[path = "crash/twins.rs"]
mod twins;
#[path = "crash/verdict.rs"]
mod verdict;
#[path = "crash/worker.rs"]
mod worker;

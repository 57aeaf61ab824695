//! The orchestrator from outside: calls in, whole envelopes out, with a store in memory and a clock that tests move.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "corridor/support.rs"]
mod support;

#[path = "corridor/audit.rs"]
mod audit;
#[path = "corridor/blocks.rs"]
mod blocks;
#[path = "corridor/capability.rs"]
mod capability;
#[path = "corridor/confirmation.rs"]
mod confirmation;
#[path = "corridor/execution.rs"]
mod execution;
#[path = "corridor/gates.rs"]
mod gates;
#[path = "corridor/idempotency.rs"]
mod idempotency;
#[path = "corridor/sessions.rs"]
mod sessions;

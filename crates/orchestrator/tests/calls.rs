//! The orchestrator: calls in, whole envelopes out, with a store in memory and a manual clock.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "calls/support.rs"]
mod support;

#[path = "calls/approvers.rs"]
mod approvers;
#[path = "calls/audit.rs"]
mod audit;
#[path = "calls/blocks.rs"]
mod blocks;
#[path = "calls/capability.rs"]
mod capability;
#[path = "calls/clock.rs"]
mod clock;
#[path = "calls/confirmation.rs"]
mod confirmation;
#[path = "calls/confirmation_limits.rs"]
mod confirmation_limits;
#[path = "calls/execution.rs"]
mod execution;
#[path = "calls/gates.rs"]
mod gates;
#[path = "calls/history.rs"]
mod history;
#[path = "calls/idempotency.rs"]
mod idempotency;
#[path = "calls/log_capture.rs"]
mod log_capture;
#[path = "calls/log_line.rs"]
mod log_line;
#[path = "calls/previews.rs"]
mod previews;
#[path = "calls/sessions.rs"]
mod sessions;
#[path = "calls/tasks.rs"]
mod tasks;

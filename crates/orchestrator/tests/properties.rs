//! Property tests: random sequences of steps are played against the orchestrator, and the resulting history is checked
//! against a small model of what is allowed. A failing sequence is shrunk.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "properties/confirmations.rs"]
mod confirmations;
#[path = "properties/history.rs"]
mod history;
#[path = "properties/model.rs"]
mod model;
#[path = "properties/player.rs"]
mod player;
#[path = "properties/regressions.rs"]
mod regressions;
#[path = "properties/rules.rs"]
mod rules;
#[path = "properties/steps.rs"]
mod steps;
#[path = "properties/support.rs"]
mod support;

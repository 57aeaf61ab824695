//! Whatever comes in whatever order, the orchestrator keeps its rules. Histories are made up at random, played, and
//! judged against a small model of what is allowed; one that breaks a rule is made as short as possible.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "properties/desk.rs"]
mod desk;
#[path = "properties/found.rs"]
mod found;
#[path = "properties/history.rs"]
mod history;
#[path = "properties/model.rs"]
mod model;
#[path = "properties/player.rs"]
mod player;
#[path = "properties/questions.rs"]
mod questions;
#[path = "properties/rules.rs"]
mod rules;
#[path = "properties/steps.rs"]
mod steps;

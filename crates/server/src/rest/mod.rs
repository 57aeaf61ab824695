//! The REST wire, one file per resource. Each translates a request into a call of the orchestrator, and its result into
//! JSON.

pub(crate) mod audience;
pub(crate) mod audit;
pub(crate) mod blocks;
pub(crate) mod call_history;
pub(crate) mod calls;
pub(crate) mod confirmations;
pub(crate) mod images;
pub(crate) mod messages;
pub(crate) mod monitoring;
pub(crate) mod prompt;
pub(crate) mod session_events;
pub mod sessions;
pub(crate) mod tasks;
pub(crate) mod tools;

//! The REST wire, one file per resource. Each translates a request into a call of the orchestrator, and its result into
//! JSON.

pub(crate) mod calls;
pub(crate) mod confirmations;
pub(crate) mod images;
pub(crate) mod monitoring;
pub(crate) mod session_events;
pub(crate) mod sessions;
pub(crate) mod tools;

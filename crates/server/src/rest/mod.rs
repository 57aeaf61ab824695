//! The REST wire: a file a resource. Each turns a request into a call of the orchestrator and its answer into JSON.

pub(crate) mod call;
pub(crate) mod confirmations;
pub(crate) mod events;
pub(crate) mod images;
pub(crate) mod operation;
pub(crate) mod sessions;
pub(crate) mod tools;

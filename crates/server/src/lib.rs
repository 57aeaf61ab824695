//! Translates wires: HTTP in, calls of the orchestrator, envelopes out. Who asks is found out here; what they may do is
//! the orchestrator's business.
//!
//! ```text
//! connection (limits, time-outs) → exchange (id, origin, route, who) → rest/… → orchestrator → envelope → bytes
//! ```
//! [`route`] is the table of all paths; a wire of its own (MCP, chat, voice) is a module beside `rest`, its rows in that
//! table, and its arms in `dispatch.rs`.

mod access;
mod app;
pub mod auth;
mod body;
mod client;
mod counters;
mod deadline;
mod dispatch;
mod exchange;
mod json;
pub mod mcp;
mod openapi;
mod options;
mod origin;
pub mod otlp;
mod problem;
mod prometheus;
mod query;
mod request_id;
mod rest;
pub mod route;
mod serve;

pub use access::AccessLog;
pub use openapi::DOCUMENT as OPENAPI;
pub use options::{Limits, Options};
pub use serve::{Error, Server};

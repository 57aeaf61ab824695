//! Translates wires: HTTP requests into calls of the orchestrator, envelopes into responses. It authenticates callers;
//! what they may do is decided by the orchestrator.
//!
//! ```text
//! connection (limits, timeouts) → service (id, origin, route, principal) → rest/…, mcp/… → orchestrator → envelope → response
//! ```
//! [`route`] is the table of all routes, each with its handler. Another wire (chat, voice) is a module beside `rest` and
//! its rows in that table.

mod access_log;
mod app;
pub mod auth;
mod body;
mod connection;
mod counters;
mod http_client;
mod idle;
mod json;
pub mod mcp;
mod openapi;
mod options;
mod origin;
pub mod otlp;
mod problem;
mod prometheus;
mod query;
mod request;
mod request_id;
mod rest;
pub mod route;
mod server;
mod service;

pub use access_log::AccessLog;
pub use openapi::DOCUMENT as OPENAPI;
pub use options::{Limits, Options};
pub use server::{Error, Server};

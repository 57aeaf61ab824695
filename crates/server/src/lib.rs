//! Translates wires: HTTP requests into calls of the orchestrator, envelopes into responses. It authenticates callers;
//! the orchestrator decides on their permissions.
//!
//! ```text
//! connection (limits, timeouts) → service (id, origin, route, principal)
//!     → rest/…, mcp/… → orchestrator → envelope → response
//!     → chat/…        → agent        → events   → response
//!     → console/…     → data         → page
//! ```
//! [`route`] is the table of all routes, each with its handler. Another wire is a module beside `rest` and its rows
//! in that table.

mod access_log;
mod app;
pub mod auth;
mod body;
mod chat;
mod chunk_queue;
mod connection;
mod connection_table;
mod console;
mod counters;
mod http_client;
mod idle_timer;
mod json;
pub mod knowledge_base;
mod log_buffer;
mod maintenance;
pub mod mcp;
mod open_streams;
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
mod running_requests;
mod server;
mod service;
mod session_prompt;
mod setup;
mod voice;
mod voice_metrics;
mod write_test;
mod write_timeout;

pub use access_log::AccessLog;
pub use log_buffer::LogBuffer;
pub use openapi::DOCUMENT as OPENAPI;
pub use options::{DEFAULT_TURN_IDLE, Limits, Options};
pub use rest::sessions::session_json;
pub use rest::tasks::to_json as task_json;
pub use server::{Error, Server};
pub use session_prompt::Prompts;
pub use setup::{BuildFinding, CheckSetup, Setup, SetupCheck, SetupStatus};

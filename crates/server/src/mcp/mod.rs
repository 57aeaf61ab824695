//! The Model Context Protocol: a toolset for any MCP host, over HTTP at `/mcp` and over stdio. Revision 2026-07-28 is
//! stateless; in older revisions `initialize` opens a session.
//!
//! ```text
//! http (principal, session) → rmcp (framing, revisions) → handler → tool_call → orchestrator → reply
//!                           → plain_call (no library)             ↗
//! ```
//! Policy belongs to the orchestrator. Whether a person approves a call is asked through the MCP host
//! (`elicitation.rs`), and never read from the call's arguments.

mod caller;
mod catalog;
mod elicitation;
mod handler;
mod http;
mod local_socket;
mod mcp_prompts;
mod message;
mod plain_call;
mod progress;
mod reply;
mod running_calls;
mod state;
mod stdio;
mod stdio_transport;
mod tool_call;
mod tool_docs;
mod tool_list;
mod turns;

pub use crate::session_prompt::Prompts;
pub use handler::Handler;
pub(crate) use http::{McpService, PlainCalls, handle};
pub use local_socket::serve_local;
pub use rmcp;
pub use stdio::{HostOptions, serve_stdio};

//! The Model Context Protocol: a toolset for any MCP host, over HTTP at `/mcp` and over pipes. Both eras: sessions that
//! begin with a handshake (2025-11-25 and before) and requests that stand alone (2026-07-28).
//!
//! ```text
//! mount (who asks, whose session) → rmcp (framing, versions) → handler → orchestrator → envelope → result
//!                                 → direct (a plain call)             ↗
//! ```
//! What a model may do is decided by the orchestrator; whether a person has agreed is asked of the host by elicitation
//! (`confirm.rs`), and never taken from anything that came as arguments.

mod call;
mod caller;
mod catalog;
mod completion;
mod confirm;
mod declare;
mod direct;
mod documents;
mod handler;
mod lines;
mod mount;
mod progress;
mod prompts;
mod result;
mod sessions;
mod shared;
mod stdio;
mod written;

pub use handler::Handler;
pub(crate) use mount::{Mount, Plain, answer};
pub use prompts::Prompts;
pub use rmcp;
pub use stdio::serve_pipe;

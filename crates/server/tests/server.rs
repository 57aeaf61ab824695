//! A server on a free port of loopback, and clients that talk bytes to it. Every answer is compared with the OpenAPI
//! document.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "server/blocks.rs"]
mod blocks;
#[path = "server/calls.rs"]
mod calls;
#[path = "server/client.rs"]
mod client;
#[path = "server/confirmations.rs"]
mod confirmations;
#[path = "server/document.rs"]
mod document;
#[path = "server/hostile.rs"]
mod hostile;
#[path = "server/images.rs"]
mod images;
#[path = "server/mcp.rs"]
mod mcp;
#[path = "server/mcp_direct.rs"]
mod mcp_direct;
#[path = "server/mcp_host.rs"]
mod mcp_host;
#[path = "server/mcp_http.rs"]
mod mcp_http;
#[path = "server/mcp_pipe.rs"]
mod mcp_pipe;
#[path = "server/operation.rs"]
mod operation;
#[path = "server/otlp.rs"]
mod otlp;
#[path = "server/principals.rs"]
mod principals;
#[path = "server/sessions.rs"]
mod sessions;
#[path = "server/stopping.rs"]
mod stopping;
#[path = "server/support.rs"]
mod support;
#[path = "server/tokens.rs"]
mod tokens;

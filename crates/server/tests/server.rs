//! Tests against a running server on a free port of loopback. Every response is validated against the OpenAPI document.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "server/authentication.rs"]
mod authentication;
#[path = "server/blocks.rs"]
mod blocks;
#[path = "server/call_history.rs"]
mod call_history;
#[path = "server/calls.rs"]
mod calls;
#[path = "server/chat.rs"]
mod chat;
#[path = "server/chat_approvals.rs"]
mod chat_approvals;
#[path = "server/chat_background.rs"]
mod chat_background;
#[path = "server/chat_errors.rs"]
mod chat_errors;
#[path = "server/chat_monitoring.rs"]
mod chat_monitoring;
#[path = "server/chat_side_requests.rs"]
mod chat_side_requests;
#[path = "server/client.rs"]
mod client;
#[path = "server/confirmations.rs"]
mod confirmations;
#[path = "server/connections.rs"]
mod connections;
#[path = "server/console.rs"]
mod console;
#[path = "server/console_activity.rs"]
mod console_activity;
#[path = "server/console_limits.rs"]
mod console_limits;
#[path = "server/console_tools.rs"]
mod console_tools;
#[path = "server/current_roles.rs"]
mod current_roles;
#[path = "server/images.rs"]
mod images;
#[path = "server/invalid_requests.rs"]
mod invalid_requests;
#[path = "server/jwt.rs"]
mod jwt;
#[path = "server/local_key.rs"]
mod local_key;
#[path = "../../orchestrator/tests/calls/log_capture.rs"]
mod log_capture;
#[path = "server/maintenance.rs"]
mod maintenance;
#[path = "server/mcp.rs"]
mod mcp;
#[path = "server/mcp_direct.rs"]
mod mcp_direct;
#[path = "server/mcp_host.rs"]
mod mcp_host;
#[path = "server/mcp_http.rs"]
mod mcp_http;
#[path = "server/mcp_stdio.rs"]
mod mcp_stdio;
#[path = "server/metrics_page.rs"]
mod metrics_page;
#[path = "server/monitoring.rs"]
mod monitoring;
#[path = "server/openapi.rs"]
mod openapi;
#[path = "server/otlp.rs"]
mod otlp;
#[path = "server/own_loop.rs"]
mod own_loop;
#[path = "server/scripted_model.rs"]
mod scripted_model;
#[allow(dead_code, reason = "shared with the tests of the agent")]
#[path = "../../agent/tests/agent/scripted_voice.rs"]
mod scripted_voice;
#[path = "server/session_reads.rs"]
mod session_reads;
#[path = "server/sessions.rs"]
mod sessions;
#[path = "server/shutdown.rs"]
mod shutdown;
#[path = "server/support.rs"]
mod support;
#[path = "server/tasks.rs"]
mod tasks;
#[path = "server/visibility.rs"]
mod visibility;
#[path = "server/voice.rs"]
mod voice;
#[path = "server/voice_limits.rs"]
mod voice_limits;

//! Importing tools from MCP servers.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod imports {
    mod hostile_http;
    mod hostile_programs;
    mod pinning;
    mod settings_checks;
    mod support;
    mod tool_calls;
}

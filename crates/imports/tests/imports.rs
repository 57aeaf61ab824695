//! Importing tools from MCP servers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod imports {
    mod calls;
    mod pinning;
    mod settings;
    mod workshop;
}

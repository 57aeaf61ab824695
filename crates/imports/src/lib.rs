//! Tools of other MCP servers. A person accepts the definitions of a server's tools once, and they are pinned by digest:
//! toolsets are built from the pins alone, and a tool whose definition has changed since is not called.
//!
//! It must not know sessions or policy: a call has passed the orchestrator before it arrives here.

mod call_result;
mod connection;
mod definition;
mod imported_tools;
pub mod pins;
pub mod settings;
mod transport;

pub use definition::Definition;
pub use imported_tools::{Import, ImportedTool};
pub use pins::{Change, Pins};
pub use settings::{EnvironmentLookup, ServerSettings};

//! Tools of other MCP servers. What a server says of its tools is accepted once, by a person, and pinned by digest:
//! toolsets are made from the pins alone, and a tool whose definition is not the accepted one any more is not called.
//!
//! Knows nothing of sessions and policy: a call here has been through the orchestrator already.

mod answer;
mod connection;
mod declaration;
mod definition;
mod import;
pub mod pins;
pub mod settings;
mod transport;

pub use definition::Definition;
pub use import::{Import, ImportedTool};
pub use pins::{Change, Pins};
pub use settings::Server;

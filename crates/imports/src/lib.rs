//! Tools of other MCP servers. A person accepts the definitions of a server's tools once, and they are pinned by
//! digest: toolsets are built from the pins alone, and a tool whose definition has changed since is not called.
//!
//! It must not know sessions or policy: a call has passed the orchestrator before it arrives here.

mod bounded_transport;
mod call_result;
mod connect_problem;
mod connection;
mod definition;
mod event_size;
mod exact_numbers;
mod http_client;
mod imported_tools;
mod limits;
mod listing;
pub mod pins;
mod program;
pub mod settings;
mod transport;

pub use definition::Definition;
pub use imported_tools::{Import, ImportedTool};
pub use limits::Limits;
pub use pins::{Change, Pins};
pub use settings::{EnvironmentLookup, ServerSettings};

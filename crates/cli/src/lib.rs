//! Toolwright for Rust programs: re-exports the other crates under one name.

pub use toolwright_contract as contract;
pub use toolwright_orchestrator as orchestrator;
pub use toolwright_providers as providers;
pub use toolwright_registry as registry;
pub use toolwright_schema as schema;
pub use toolwright_server as server;

/// Compiles the examples of the page, so that it stays true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/embed-in-rust.md")]
struct EmbedInRust;

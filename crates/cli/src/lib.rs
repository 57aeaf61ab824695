//! Toolwright for Rust programs: re-exports the other crates under one name.

pub use toolwright_contract as contract;
pub use toolwright_orchestrator as orchestrator;
pub use toolwright_providers as providers;
pub use toolwright_registry as registry;
pub use toolwright_schema as schema;
pub use toolwright_server as server;

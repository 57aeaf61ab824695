//! Turns tool folders into one immutable, versioned toolset, and composes prompts from it.
//!
//! The library never touches terminal, environment or network, and knows nothing of how a handler runs.

pub mod artifact;
pub mod build;
mod cache;
mod check;
mod compiled_tool;
pub mod condition;
pub mod condition_types;
#[cfg(test)]
mod corpora;
pub mod declared;
mod describe;
pub mod diagnostic;
mod docs;
mod excerpt;
mod fields;
mod fingerprint;
pub mod formats;
mod handler;
mod hidden_unicode;
pub mod http_tool;
pub mod json;
pub mod preview;
pub mod prompt;
mod reader;
mod shared;
pub mod snapshot;
pub mod source;
pub mod toolset;

pub use compiled_tool::{hex, push_hex};
pub use describe::{DESCRIBE, describe_tool};

//! Turns tool folders into one immutable, versioned toolset, and composes prompts from it.
//!
//! The library never touches terminal, environment or network, and knows nothing of how a handler runs.

pub mod artifact;
pub mod build;
mod cache;
mod check;
mod compiled;
pub mod condition;
#[cfg(test)]
mod corpora;
pub mod declared;
pub mod diagnostic;
mod docs;
mod excerpt;
mod fields;
mod fingerprint;
mod handler;
mod hidden;
pub mod http;
pub mod json;
pub mod preview;
pub mod prompt;
mod reader;
mod shared;
pub mod source;
pub mod toolset;

pub use compiled::{hex, push_hex};

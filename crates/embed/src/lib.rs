//! Texts to vectors, behind [`Embedder`](toolwright_capabilities::Embedder): all-MiniLM-L6-v2 in this process, or an
//! endpoint that speaks OpenAI's API. A crate for its dependencies.
//!
//! It must not know what the vectors are for, nor read the environment.

mod cached;
mod client;
pub mod endpoint;
pub mod install;
mod local;
mod minilm;
mod open;
#[cfg(test)]
mod test_support;

pub use open::{Opener, Settings, Unavailable, open};

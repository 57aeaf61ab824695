//! Turns texts into vectors, behind [`Embedder`](toolwright_capabilities::Embedder): all-MiniLM-L6-v2 in this process,
//! or an HTTP endpoint with OpenAI's API. A crate of its own because of its dependencies.
//!
//! It must not know what the vectors are for, read the environment or start processes.

pub mod endpoint;
mod http_client;
pub mod install;
mod lazy;
mod minilm;
mod query_cache;
#[cfg(test)]
mod support;

pub use lazy::{LazyEmbedder, Settings, Unavailable, open};

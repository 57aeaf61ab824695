//! The knowledge base's tests.

#[path = "kb/pgvector.rs"]
mod pgvector;

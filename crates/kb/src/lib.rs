//! The knowledge base: records, ingestion, hybrid search and storage.
//!
//! - `record`: a record, its validation and its key; `passages`: the parts of its text that get vectors.
//! - `ingest`: turns files into records.
//! - `tokenizer`: turns text into stemmed words, for indexing, queries and snippets.
//! - `store`: the interface of a back end, and the back ends.
//! - `search`, `relevance`, `snippet`: turn the candidates of a back end into results; `kb`: the library's entry point.
//! - `capability`: the `kb` capability of handlers.

mod capability;
pub mod ingest;
mod kb;
pub mod passages;
pub mod record;
pub mod relevance;
pub mod search;
mod snippet;
pub mod store;
mod tokenizer;

pub use capability::{KbCapability, Options};
pub use kb::{EmbedderSource, Kb, Retrieval};
pub use record::{Namespace, Record};

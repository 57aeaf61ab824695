//! The knowledge base of Toolwright: records, where they come from, how they are found, and where they are kept.
//!
//! - `record`: one record, its rules and its key; `passages`: the parts of it that get vectors.
//! - `ingest`: files become records.
//! - `store`: what a back end must do, and the back ends.
//! - `search`, `snippet`: the two lists of a back end become results; `kb`: all of it together.
//! - `served`: what handlers reach of it.

pub mod ingest;
mod kb;
pub mod passages;
pub mod record;
pub mod search;
mod served;
mod snippet;
mod stems;
pub mod store;

pub use kb::{Embedders, Kb, Retrieval};
pub use record::{Namespace, Record};
pub use served::{KnowledgeBase, Options};

//! The knowledge base of Toolwright: records, where they come from, how they are found, and where they are kept.
//!
//! - `record`: one record, its rules and its key; `passages`: the parts of it that get vectors.
//! - `store`: what a back end must do, and the back ends.

pub mod passages;
pub mod record;
pub mod store;

pub use record::{Namespace, Record};

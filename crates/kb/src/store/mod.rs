//! Where records and vectors are kept. One set of rules, several back ends; one conformance suite (`tests/kb.rs`) that
//! all of them pass.
//!
//! # The rules
//!
//! - **A back end gives candidates, not results.** It answers with two lists, by words and by vector, each filtered,
//!   best first. Fusing them, snippets and scores from 0 to 1 are the same for all and lie above it (`search.rs`).
//! - **Filters are exact**: a list holds the best `limit` of what passes, at any selectivity.
//! - **A commit is all or nothing.** Until [`Write::commit`] returns nobody sees any of it; a process that dies before
//!   leaves what the last commit left. Readers never wait for a writer, and see a commit with their next search, also
//!   one that another process made.
//! - **One writer.** A second one gets [`Error::Busy`].
//! - **Vectors are apart from records.** They belong to passages by [`Passage::key`](crate::passages::Passage), are kept
//!   as soon as [`Write::put_vectors`] returns, and may come long after the record. All of them have one maker;
//!   another's are refused with [`Error::OtherEmbedder`] until [`Write::drop_vectors`].
//! - **Order is the same every time**: equal scores in the order of their keys.
//!
//! All functions block: call them beside the async threads.

mod any;
mod embedded;
pub mod postgres;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub use self::any::Store;
pub use self::embedded::Embedded;
pub use self::postgres::Postgres;
use crate::record::{Key, Namespace, Record};

/// What goes wrong in a back end. The text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("another process is writing to the knowledge base: wait until it is done, or end it")]
    Busy,
    #[error("the knowledge base did not answer in time")]
    Timeout,
    #[error("the knowledge base cannot be reached: {0}")]
    Unreachable(String),
    #[error(
        "the vectors were made by `{kept}`, but `{asked}` is set up now: `toolwright kb rebuild` makes them anew"
    )]
    OtherEmbedder { kept: String, asked: String },
    #[error("the knowledge base cannot be read: {0}; `toolwright kb rebuild` makes its index anew")]
    Damaged(String),
    /// Why the embedder gave none.
    #[error("{0}")]
    NoVectors(String),
    #[error("{0}")]
    Unusable(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// What every hit must meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub namespace: Namespace,
    /// In `personal`: whose records. Without it that namespace is empty.
    pub owner: Option<String>,
    /// The record's type.
    pub kind: Option<String>,
    /// All of them.
    pub tags: Vec<String>,
    /// `last_updated` in milliseconds since 1970, both ends inclusive. A record without a date is in no range.
    pub from: Option<i64>,
    pub until: Option<i64>,
}

/// One search.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Words, never a query language: any text is allowed, and one without words finds nothing.
    pub words: &'a str,
    /// Of length 1, made by the maker of the kept vectors.
    pub vector: Option<&'a [f32]>,
    pub filter: &'a Filter,
    /// Of each list.
    pub limit: usize,
    /// When nobody waits for the answer any more.
    pub deadline: Option<Instant>,
}

/// A record in a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    pub key: Key,
    /// Higher is better; comparable within its list only.
    pub score: f32,
    /// In the list by vector: which of the record's passages it was.
    pub passage: u32,
}

/// Both lists, best first, each record once a list, from one committed state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    pub words: Vec<Candidate>,
    /// The score is the cosine.
    pub vectors: Vec<Candidate>,
}

/// What makes vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// `Embedder::name`.
    pub name: String,
    pub dimensions: usize,
}

/// What was read at a source when it was last ingested: SHA-256.
pub type Digest = [u8; 32];

/// A record of a source, as far as it takes to see whether it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub key: Key,
    /// [`Record::digest`].
    pub digest: u64,
}

/// How much there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub records: u64,
    pub by_namespace: BTreeMap<String, u64>,
    pub by_type: BTreeMap<String, u64>,
    pub sources: u64,
    /// Passages of all records.
    pub passages: u64,
    /// Of these, the ones with a vector.
    pub with_vector: u64,
    /// What made them; null without vectors.
    pub embedder: Option<Maker>,
    /// What it takes on disk.
    pub bytes: u64,
}

/// What a back end must do for readers.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Both lists. Without a vector, or without any kept, the second is empty. A vector of the wrong length is
    /// [`Error::OtherEmbedder`].
    fn search(&self, search: &Search<'_>) -> Result<Found>;

    /// The records with these keys, in any order. What is not there is left out.
    fn fetch(&self, keys: &[Key]) -> Result<Vec<Record>>;

    /// All records in the order of their ids, until `visit` fails.
    fn each(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()>;

    /// How much there is.
    fn stats(&self) -> Result<Stats>;

    /// What has been ingested, by name.
    fn sources(&self) -> Result<BTreeMap<String, Digest>>;

    /// The records of one source.
    fn of_source(&self, source: &str) -> Result<Vec<Known>>;

    /// What made the vectors, once there are any.
    fn maker(&self) -> Result<Option<Maker>>;

    /// The records with a passage that has no vector, in any order.
    fn without_vector(&self) -> Result<Vec<Key>>;

    /// Begins to write, or [`Error::Busy`].
    fn write(&self) -> Result<Box<dyn Write + '_>>;

    /// Makes the index anew from the kept records, without the vectors that no passage needs any more. Readers see the
    /// old one until it is done. A second writer is [`Error::Busy`] here too.
    fn rebuild(&self) -> Result<()>;
}

/// What a back end must do for its one writer. What was not committed is forgotten when it is dropped.
pub trait Write {
    /// Puts a record in the place of the one with its id, if there is one, whichever source that came from.
    fn put(&mut self, record: &Record, source: &str) -> Result<()>;

    /// Removes a record, if it is there.
    fn remove(&mut self, key: Key) -> Result<()>;

    /// Notes what was read at a source, or forgets the source; its records are put and removed one by one.
    fn note_source(&mut self, source: &str, digest: Option<Digest>) -> Result<()>;

    /// Makes all of the above visible and lasting, in one step. More may follow.
    fn commit(&mut self) -> Result<()>;

    /// Keeps vectors of length 1 by their passages' keys. Lasting and visible when it returns.
    fn put_vectors(&mut self, maker: &Maker, vectors: &[(u64, Vec<f32>)]) -> Result<()>;

    /// Forgets all vectors and their maker.
    fn drop_vectors(&mut self) -> Result<()>;
}

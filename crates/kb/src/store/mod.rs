//! Where records and vectors are stored. Every back end passes the conformance suite in `tests/kb.rs`.
//!
//! # Rules for back ends
//!
//! - **A back end returns candidates, not results**: two lists, by keyword and by vector, each filtered, best first.
//!   Fusing them, snippets and scores from 0 to 1 are the same for all back ends (`search.rs`).
//! - **Filters are exact**: a list holds the best `limit` records that match, at any selectivity.
//! - **A commit is atomic.** Nothing is visible before [`StoreWriter::commit`] returns; a process that dies earlier
//!   leaves the last commit. Readers never wait for a writer, and see a commit of any process with their next search.
//! - **One writer.** A second one gets [`Error::Locked`].
//! - **Vectors are separate from records.** They belong to passages by [`Passage::key`](crate::passages::Passage), are
//!   durable as soon as [`StoreWriter::put_vectors`] returns, and may be added long after the record. All of them are
//!   from one embedder; others are refused with [`Error::EmbedderMismatch`] until [`StoreWriter::drop_vectors`].
//! - **The order is deterministic**: equal scores are ordered by key.
//!
//! All functions block: do not call them on async threads.

mod embedded;
pub mod postgres;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

pub use self::embedded::Embedded;
pub use self::postgres::Postgres;
use crate::record::{Namespace, Record, RecordKey};

/// An error of a back end, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the knowledge base is locked: another process is writing to it")]
    Locked,
    #[error("the knowledge base did not respond before the deadline")]
    Timeout,
    #[error("the knowledge base is unreachable: {0}")]
    Unreachable(String),
    #[error(
        "the stored vectors are from `{stored}`, but `{configured}` is configured: `toolwright kb rebuild` replaces them"
    )]
    EmbedderMismatch { stored: String, configured: String },
    #[error("the knowledge base is corrupt: {0}; `toolwright kb rebuild` rebuilds its index")]
    Corrupt(String),
    /// The embedder failed.
    #[error("{0}")]
    Embedding(String),
    #[error("{0}")]
    Unusable(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// Opens the store at a URL: `dir:PATH` or `postgres://…`. A database is connected to with the first call.
pub fn open(url: &str) -> Result<Box<dyn Backend>> {
    match url.split_once(':') {
        Some(("dir", path)) if !path.is_empty() => Ok(Box::new(Embedded::open(Path::new(path))?)),
        Some(("postgres" | "postgresql", _)) => {
            Ok(Box::new(Postgres::new(url, postgres::Options::default())?))
        }
        // The URL is not quoted: it may contain a password.
        _ => Err(Error::Unusable(
            "`kb.url` must be `dir:PATH`, such as `dir:.toolwright/kb`, or \
             `postgres://USER:PASSWORD@HOST:5432/DATABASE`"
                .to_owned(),
        )),
    }
}

/// The conditions that every candidate meets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub namespace: Namespace,
    /// In `personal`: whose records. Without an owner, that namespace is empty.
    pub owner: Option<String>,
    /// The record's type.
    pub kind: Option<String>,
    /// A record must have all of them.
    pub tags: Vec<String>,
    /// The range of `last_updated` in milliseconds since 1970, inclusive. Records without a date match no range.
    pub updated_from: Option<i64>,
    pub updated_until: Option<i64>,
}

/// A search in a back end.
#[derive(Debug, Clone, Copy)]
pub struct CandidateQuery<'a> {
    /// Plain words without syntax. A text without words matches nothing.
    pub text: &'a str,
    /// The normalized vector of the query, from the embedder of the stored vectors.
    pub vector: Option<&'a [f32]>,
    pub filter: &'a Filter,
    /// The maximum length of each list.
    pub limit: usize,
    pub deadline: Option<Instant>,
}

/// A record in a candidate list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    pub key: RecordKey,
    /// Higher is better; comparable only within a list.
    pub score: f32,
    /// In the vector list: the index of the record's best passage.
    pub passage: u32,
}

impl Candidate {
    /// Orders by descending score, then by key.
    pub fn order(left: &Self, right: &Self) -> Ordering {
        right.score.total_cmp(&left.score).then(left.key.cmp(&right.key))
    }
}

/// Both lists, best first, each record at most once per list, from one snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CandidateLists {
    /// Scored by BM25.
    pub keyword: Vec<Candidate>,
    /// The BM25 score that counts as half relevant, by the words of the query and how rare they are in all records; 0
    /// without words.
    pub keyword_scale: f32,
    /// Scored by the cosine.
    pub vector: Vec<Candidate>,
}

/// Identifies the embedder of the stored vectors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbedderId {
    /// `Embedder::name`.
    pub name: String,
    pub dimensions: usize,
}

impl EmbedderId {
    /// Refuses the vector of a query by another embedder.
    fn check_query(&self, vector: &[f32]) -> Result<()> {
        if vector.len() == self.dimensions {
            return Ok(());
        }
        let configured = format!("an embedder with {} dimensions", vector.len());
        Err(Error::EmbedderMismatch { stored: self.name.clone(), configured })
    }

    /// Refuses new vectors of a wrong length, and those that are not from the embedder of the stored ones.
    fn check_new(&self, stored: Option<&Self>, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        if let Some(stored) = stored.filter(|stored| *stored != self) {
            let (stored, configured) = (stored.name.clone(), self.name.clone());
            return Err(Error::EmbedderMismatch { stored, configured });
        }
        match vectors.iter().find(|(_, vector)| vector.len() != self.dimensions) {
            None => Ok(()),
            Some((_, vector)) => Err(Error::Unusable(format!(
                "`{}` returned a vector with {} dimensions instead of {}",
                self.name,
                vector.len(),
                self.dimensions
            ))),
        }
    }
}

/// The SHA-256 of a source's content at its last ingest.
pub type SourceDigest = [u8; 32];

/// The key and digest of a stored record, to detect changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordDigest {
    pub key: RecordKey,
    /// [`Record::digest`].
    pub digest: u64,
}

/// Statistics of a knowledge base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    pub records: u64,
    pub by_namespace: BTreeMap<String, u64>,
    pub by_type: BTreeMap<String, u64>,
    pub sources: u64,
    /// The passages of all records.
    pub passages: u64,
    /// The passages that have a vector.
    pub with_vector: u64,
    /// The embedder of the vectors; null without vectors.
    pub embedder: Option<EmbedderId>,
    /// The size on disk.
    pub bytes: u64,
}

/// The interface of a back end.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Both lists. Without a query vector or stored vectors, the vector list is empty. A vector of the wrong length is
    /// [`Error::EmbedderMismatch`].
    fn find_candidates(&self, query: &CandidateQuery<'_>) -> Result<CandidateLists>;

    /// The records with these keys, in any order. Unknown keys are skipped.
    fn fetch(&self, keys: &[RecordKey]) -> Result<Vec<Record>>;

    /// Visits all records in the order of their ids, until `visit` fails.
    fn for_each_record(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()>;

    fn stats(&self) -> Result<Stats>;

    /// The digests of all ingested sources, by name.
    fn source_digests(&self) -> Result<BTreeMap<String, SourceDigest>>;

    /// The records of one source.
    fn records_of_source(&self, source: &str) -> Result<Vec<RecordDigest>>;

    /// The embedder of the stored vectors, if there are any.
    fn embedder(&self) -> Result<Option<EmbedderId>>;

    /// The records with a passage that has no vector, in any order.
    fn keys_without_vector(&self) -> Result<Vec<RecordKey>>;

    /// Takes the write lock, or returns [`Error::Locked`].
    fn begin_write(&self) -> Result<Box<dyn StoreWriter + '_>>;

    /// Rebuilds the index from the stored records and drops unused vectors. Readers see the old index until it is done.
    /// Returns [`Error::Locked`] while another process writes.
    fn rebuild(&self) -> Result<()>;
}

/// The writer of a back end. Holds the write lock; dropping it discards what was not committed.
pub trait StoreWriter {
    /// Stores a record and replaces the one with its id, from whichever source.
    fn put(&mut self, record: &Record, source: &str) -> Result<()>;

    /// Removes a record, if it exists.
    fn remove(&mut self, key: RecordKey) -> Result<()>;

    /// Stores the digest of a source, or removes it. Its records are put and removed one by one.
    fn set_source_digest(&mut self, source: &str, digest: Option<SourceDigest>) -> Result<()>;

    /// Makes the changes above visible and durable, atomically. The writer may be used again.
    fn commit(&mut self) -> Result<()>;

    /// Stores normalized vectors by the keys of their passages. They are visible and durable when it returns.
    fn put_vectors(&mut self, embedder: &EmbedderId, vectors: &[(u64, Vec<f32>)]) -> Result<()>;

    /// Removes all vectors.
    fn drop_vectors(&mut self) -> Result<()>;
}

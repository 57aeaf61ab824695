//! The embedded back end: a directory with a tantivy index and vector files.
//!
//! ```text
//! DIR/lock         locked by the writer
//! DIR/current      names the current generation; a rebuild creates another one and then replaces this file
//! DIR/<n>/words    the tantivy index, which contains the records; a commit replaces its `meta.json`
//! DIR/<n>/vectors  immutable vector files (`vector_files.rs`)
//! ```
//! A vector belongs to a text, not to a record, so the index and the vectors need no common commit.

mod distance;
mod generation;
mod keyword_search;
mod passage_table;
mod schema;
mod snapshot;
mod vector_files;
mod vector_search;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::{DocAddress, TantivyError, Term};

use self::generation::OpenGeneration;
use self::schema::StoredSource;
use self::snapshot::Snapshot;
use self::writer::EmbeddedWriter;
use super::{
    Backend, CandidateLists, CandidateQuery, EmbedderId, Error, RecordDigest, Result, SourceDigest, Stats,
    StoreWriter,
};
use crate::record::{Record, RecordKey};

/// The embedded back end.
pub struct Embedded {
    dir: PathBuf,
    opened: Mutex<Option<OpenGeneration>>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Embedded").field("dir", &self.dir).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Opens the knowledge base in a directory, or creates it.
    pub fn open(dir: &Path) -> Result<Self> {
        generation::initialize(dir)?;
        Ok(Self { dir: dir.to_owned(), opened: Mutex::default() })
    }

    /// The last commit of any process.
    fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        OpenGeneration::snapshot(&self.dir, &mut opened)
    }
}

impl Backend for Embedded {
    fn find_candidates(&self, query: &CandidateQuery<'_>) -> Result<CandidateLists> {
        let snapshot = self.snapshot()?;
        if let (Some(vector), Some(stored)) = (query.vector, snapshot.vectors.embedder()) {
            stored.check_query(vector)?;
        }
        snapshot.find_candidates(query)
    }

    fn fetch(&self, keys: &[RecordKey]) -> Result<Vec<Record>> {
        let snapshot = self.snapshot()?;
        let mut records = Vec::new();
        for key in keys {
            if let Some(address) = snapshot.find(*key)? {
                records.push(snapshot.record(address)?.record);
            }
        }
        Ok(records)
    }

    fn for_each_record(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let snapshot = self.snapshot()?;
        let mut ids: Vec<(String, DocAddress)> = Vec::new();
        for address in snapshot.record_addresses()? {
            ids.push((snapshot.record(address)?.record.id, address));
        }
        ids.sort();
        ids.into_iter().try_for_each(|(_, address)| visit(snapshot.record(address)?.record))
    }

    fn stats(&self) -> Result<Stats> {
        let snapshot = self.snapshot()?;
        let mut stats = Stats { embedder: snapshot.vectors.embedder().cloned(), ..Stats::default() };
        snapshot.for_each_term(snapshot.fields.scope, &mut |scope, count| {
            let namespace = scope.split(':').next().unwrap_or_default();
            *stats.by_namespace.entry(namespace.to_owned()).or_default() += count;
            stats.records += count;
        })?;
        snapshot.for_each_term(snapshot.fields.kind, &mut |kind, count| {
            *stats.by_type.entry(kind.to_owned()).or_default() += count;
        })?;
        snapshot.for_each_term(snapshot.fields.source_name, &mut |_, _| stats.sources += 1)?;
        snapshot.for_each_passage_list(&mut |_, keys, with_vector| {
            stats.passages += keys.len() as u64;
            stats.with_vector += with_vector as u64;
        })?;
        stats.bytes = generation::size_on_disk(&self.dir);
        Ok(stats)
    }

    fn source_digests(&self) -> Result<BTreeMap<String, SourceDigest>> {
        let sources = self.snapshot()?.sources()?.into_iter();
        Ok(sources.map(|StoredSource { source, digest }| (source, digest)).collect())
    }

    fn records_of_source(&self, source: &str) -> Result<Vec<RecordDigest>> {
        let snapshot = self.snapshot()?;
        let term = Term::from_field_text(snapshot.fields.source, source);
        let mut records = Vec::new();
        for segment in snapshot.searcher.segment_readers() {
            let column = |name| segment.fast_fields().u64(name).map_err(corrupt);
            let (keys, digests) = (column("key")?, column("digest")?);
            let digest_of = |doc: u32| RecordDigest {
                key: RecordKey(keys.first(doc).unwrap_or_default()),
                digest: digests.first(doc).unwrap_or_default(),
            };
            records.extend(snapshot::documents_with(segment, &term)?.into_iter().map(digest_of));
        }
        Ok(records)
    }

    fn embedder(&self) -> Result<Option<EmbedderId>> {
        Ok(self.snapshot()?.vectors.embedder().cloned())
    }

    fn keys_without_vector(&self) -> Result<Vec<RecordKey>> {
        let mut missing = Vec::new();
        self.snapshot()?.for_each_passage_list(&mut |record, keys, with_vector| {
            if keys.len() > with_vector {
                missing.push(record);
            }
        })?;
        Ok(missing)
    }

    fn begin_write(&self) -> Result<Box<dyn StoreWriter + '_>> {
        Ok(Box::new(EmbeddedWriter::begin(self)?))
    }

    fn rebuild(&self) -> Result<()> {
        writer::rebuild(self)
    }
}

fn corrupt(error: TantivyError) -> Error {
    Error::Corrupt(error.to_string())
}

fn io_error(path: &Path, error: &io::Error) -> Error {
    Error::Unusable(format!("cannot use {}: {error}", path.display()))
}

//! The writer of the embedded back end, and the rebuild of its index.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use tantivy::{Index, IndexWriter, Term};

use super::schema::Fields;
use super::snapshot::Snapshot;
use super::vector_files::Vectors;
use super::{Embedded, corrupt, generation, io_error};
use crate::record::{Record, RecordKey};
use crate::store::{EmbedderId, Result, SourceDigest, StoreWriter};

/// The memory of each indexing thread.
const THREAD_MEMORY_BYTES: usize = 64 << 20;
const MAX_THREADS: usize = 4;

/// Holds the write lock until it is dropped.
pub struct EmbeddedWriter<'a> {
    store: &'a Embedded,
    generation: PathBuf,
    index: Index,
    fields: Fields,
    /// The state of the last commit.
    snapshot: Arc<Snapshot>,
    /// Created for the first record, because it starts threads that vectors do not need.
    index_writer: Option<IndexWriter>,
    /// The records put since the last commit.
    put_keys: HashSet<RecordKey>,
    _lock: File,
}

impl<'a> EmbeddedWriter<'a> {
    pub fn begin(store: &'a Embedded) -> Result<Self> {
        let lock = generation::lock(&store.dir)?;
        let generation = generation::current_generation(&store.dir)?;
        let (index, fields) = generation::open_index(&generation)?;
        let snapshot = store.snapshot()?;
        let put_keys = HashSet::new();
        Ok(Self { store, generation, index, fields, snapshot, index_writer: None, put_keys, _lock: lock })
    }

    fn index_writer(&mut self) -> Result<&mut IndexWriter> {
        match &mut self.index_writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(create_index_writer(&self.index)?)),
        }
    }
}

impl StoreWriter for EmbeddedWriter<'_> {
    fn put(&mut self, record: &Record, source: &str) -> Result<()> {
        let key = record.key();
        let document = self.fields.record_document(record, source)?;
        // Deleting searches every segment; most records of a first ingest do not exist yet.
        if !self.put_keys.insert(key) || self.snapshot.find(key)?.is_some() {
            let term = self.fields.key_term(key);
            self.index_writer()?.delete_term(term);
        }
        self.index_writer()?.add_document(document).map_err(corrupt)?;
        Ok(())
    }

    fn remove(&mut self, key: RecordKey) -> Result<()> {
        self.put_keys.remove(&key);
        let term = self.fields.key_term(key);
        self.index_writer()?.delete_term(term);
        Ok(())
    }

    fn set_source_digest(&mut self, source: &str, digest: Option<SourceDigest>) -> Result<()> {
        let term = Term::from_field_text(self.fields.source_name, source);
        self.index_writer()?.delete_term(term);
        if let Some(digest) = digest {
            let document = self.fields.source_document(source, digest)?;
            self.index_writer()?.add_document(document).map_err(corrupt)?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.put_keys.clear();
        let Some(writer) = self.index_writer.take() else { return Ok(()) };
        commit_index(writer)?;
        self.snapshot = self.store.snapshot()?;
        Ok(())
    }

    fn put_vectors(&mut self, embedder: &EmbedderId, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        if vectors.is_empty() {
            return Ok(());
        }
        let snapshot = self.store.snapshot()?;
        embedder.check_new(snapshot.vectors.embedder(), vectors)?;
        snapshot.vectors.add(&generation::vectors_dir(&self.generation), embedder, vectors)
    }

    fn drop_vectors(&mut self) -> Result<()> {
        Vectors::remove_all(&generation::vectors_dir(&self.generation))
    }
}

/// Writes all records and their vectors into a new generation, and makes it the current one.
pub fn rebuild(store: &Embedded) -> Result<()> {
    let lock = generation::lock(&store.dir)?;
    let snapshot = store.snapshot()?;
    let old = generation::current_generation(&store.dir)?;
    let number = old.file_name().and_then(|name| name.to_string_lossy().parse::<u64>().ok()).unwrap_or(0);
    let new = store.dir.join((number + 1).to_string());
    let (index, fields) = generation::create_generation(&new)?;
    let writer = create_index_writer(&index)?;
    for address in snapshot.record_addresses()? {
        let stored = snapshot.record(address)?;
        let document = fields.record_document(&stored.record, &stored.source)?;
        writer.add_document(document).map_err(corrupt)?;
    }
    for stored in snapshot.sources()? {
        let document = fields.source_document(&stored.source, stored.digest)?;
        writer.add_document(document).map_err(corrupt)?;
    }
    commit_index(writer)?;
    let mut passage_keys = HashSet::new();
    snapshot.for_each_passage_list(&mut |_, keys, _| passage_keys.extend(keys))?;
    snapshot.vectors.copy(&generation::vectors_dir(&new), &passage_keys)?;
    generation::set_current(&store.dir, &new)?;
    drop(lock);
    // Readers that have the old files open can still read them.
    fs::remove_dir_all(&old).map_err(|error| io_error(&old, &error))
}

fn create_index_writer(index: &Index) -> Result<IndexWriter> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    index.writer_with_num_threads(threads, threads * THREAD_MEMORY_BYTES).map_err(corrupt)
}

fn commit_index(mut writer: IndexWriter) -> Result<()> {
    writer.commit().map_err(corrupt)?;
    writer.wait_merging_threads().map_err(corrupt)
}

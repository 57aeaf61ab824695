//! The one writer, and how the index is made anew.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::PathBuf;

use tantivy::{Index, IndexWriter, Term};

use super::fields::{Fields, Kept, Noted};
use super::vectors::Vectors;
use super::{Embedded, damaged, folder};
use crate::record::{Key, Record};
use crate::store::{Digest, Error, Maker, Result, Write};

/// Of each thread that indexes.
const MEMORY: usize = 64 << 20;
const MOST_THREADS: usize = 4;

/// Holds the lock until it is dropped.
pub struct Writer<'a> {
    store: &'a Embedded,
    folder: PathBuf,
    index: Index,
    fields: Fields,
    /// Made when the first record comes: threads and memory that vectors alone do not need.
    open: Option<IndexWriter>,
    /// What was put since the last commit.
    put: HashSet<Key>,
    _lock: File,
}

impl<'a> Writer<'a> {
    pub fn begin(store: &'a Embedded) -> Result<Self> {
        let lock = folder::lock(&store.dir)?;
        let folder = folder::in_force(&store.dir)?;
        let (index, fields) = folder::open_index(&folder)?;
        Ok(Self { store, folder, index, fields, open: None, put: HashSet::new(), _lock: lock })
    }

    fn open(&mut self) -> Result<&mut IndexWriter> {
        match &mut self.open {
            Some(open) => Ok(open),
            none => Ok(none.insert(index_writer(&self.index)?)),
        }
    }

    fn replace(&mut self, term: Term) -> Result<()> {
        self.open()?.delete_term(term);
        Ok(())
    }
}

impl Write for Writer<'_> {
    fn put(&mut self, record: &Record, source: &str) -> Result<()> {
        let key = record.key();
        let document = self.fields.document(record, source)?;
        // A deletion is looked up in every segment: most records of a first ingest need none.
        if !self.put.insert(key) || self.store.view()?.holds(key)? {
            self.replace(self.fields.of_key(key))?;
        }
        self.open()?.add_document(document).map_err(damaged)?;
        Ok(())
    }

    fn remove(&mut self, key: Key) -> Result<()> {
        self.put.remove(&key);
        self.replace(self.fields.of_key(key))
    }

    fn note_source(&mut self, source: &str, digest: Option<Digest>) -> Result<()> {
        self.replace(Term::from_field_text(self.fields.noted, source))?;
        if let Some(digest) = digest {
            let note = self.fields.note(source, digest)?;
            self.open()?.add_document(note).map_err(damaged)?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.put.clear();
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.commit().map_err(damaged)?;
        open.wait_merging_threads().map_err(damaged)
    }

    fn put_vectors(&mut self, maker: &Maker, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        if vectors.is_empty() {
            return Ok(());
        }
        if vectors.iter().any(|(_, vector)| vector.len() != maker.dimensions) {
            return Err(Error::Unusable(format!(
                "`{}` gave a vector of another length than it says",
                maker.name
            )));
        }
        let view = self.store.view()?;
        match view.vectors.maker() {
            Some(kept) if kept != maker => {
                Err(Error::OtherEmbedder { kept: kept.name.clone(), asked: maker.name.clone() })
            }
            _ => view.vectors.add(&folder::vectors_in(&self.folder), maker, vectors),
        }
    }

    fn drop_vectors(&mut self) -> Result<()> {
        Vectors::remove_all(&folder::vectors_in(&self.folder))
    }
}

/// All records into a new folder, with the vectors that they still need; then that one is in force.
pub fn rebuild(store: &Embedded) -> Result<()> {
    let lock = folder::lock(&store.dir)?;
    let view = store.view()?;
    let old = folder::in_force(&store.dir)?;
    let number = old.file_name().and_then(|name| name.to_string_lossy().parse::<u64>().ok()).unwrap_or(0);
    let new = store.dir.join((number + 1).to_string());
    let (index, fields) = folder::create(&new)?;
    let mut writer = index_writer(&index)?;
    view.each_record(&mut |address| {
        let kept: Kept<Record> = view.stored(address)?;
        writer.add_document(fields.document(&kept.record, &kept.source)?).map_err(damaged)?;
        Ok(())
    })?;
    view.each_note(&mut |noted: Noted| {
        writer.add_document(fields.note(&noted.source, noted.digest)?).map_err(damaged)?;
        Ok(())
    })?;
    writer.commit().map_err(damaged)?;
    writer.wait_merging_threads().map_err(damaged)?;
    view.vectors.copy(&folder::vectors_in(&new), &mut view.passage_keys()?.into_iter())?;
    folder::put_in_force(&store.dir, &new)?;
    drop(lock);
    // Readers that still have it open keep it until they look again.
    fs::remove_dir_all(&old).map_err(|error| folder::unusable(&old, &error))
}

fn index_writer(index: &Index) -> Result<IndexWriter> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    index.writer_with_num_threads(threads, threads * MEMORY).map_err(damaged)
}

//! The knowledge base in one directory: words in a tantivy index, vectors in files beside it.
//!
//! ```text
//! DIR/lock         held by the one writer
//! DIR/current      the folder in force: a rebuild makes another one and then replaces this file
//! DIR/<n>/words    the index, with the records; a commit replaces its `meta.json`
//! DIR/<n>/vectors  files that never change (`vectors.rs`)
//! ```
//! A vector belongs to a text and not to a record: words and vectors need no common commit.

mod bits;
mod fields;
mod folder;
mod kernel;
mod scan;
mod table;
mod vectors;
mod view;
mod words;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::{DocAddress, TantivyError, Term};

use self::fields::{Kept, Noted};
use self::folder::Opened;
use self::view::View;
use self::writer::Writer;
use super::{Backend, Digest, Error, Found, Known, Maker, Result, Search, Stats, Write};
use crate::record::{Key, Record};

/// The embedded back end.
#[derive(Debug)]
pub struct Embedded {
    dir: PathBuf,
    opened: Mutex<Option<Opened>>,
}

impl Embedded {
    /// The knowledge base in a directory, which is made when it is not there.
    pub fn open(dir: &Path) -> Result<Self> {
        folder::prepare(dir)?;
        Ok(Self { dir: dir.to_owned(), opened: Mutex::default() })
    }

    /// What was committed last, by whichever process.
    fn view(&self) -> Result<Arc<View>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Opened::current(&self.dir, &mut opened)
    }
}

impl Backend for Embedded {
    fn search(&self, search: &Search<'_>) -> Result<Found> {
        let view = self.view()?;
        if let (Some(vector), Some(maker)) = (search.vector, view.vectors.maker())
            && vector.len() != maker.dimensions
        {
            let asked = format!("another with {} dimensions", vector.len());
            return Err(Error::OtherEmbedder { kept: maker.name.clone(), asked });
        }
        view.search(search)
    }

    fn fetch(&self, keys: &[Key]) -> Result<Vec<Record>> {
        let view = self.view()?;
        keys.iter().filter_map(|key| view.record(*key).transpose()).collect()
    }

    fn each(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let view = self.view()?;
        let mut ids: Vec<(String, DocAddress)> = Vec::new();
        view.each_record(&mut |address| {
            ids.push((view.stored::<Kept<Record>>(address)?.record.id, address));
            Ok(())
        })?;
        ids.sort();
        ids.into_iter().try_for_each(|(_, address)| visit(view.stored::<Kept<Record>>(address)?.record))
    }

    fn stats(&self) -> Result<Stats> {
        let view = self.view()?;
        let mut stats = Stats { embedder: view.vectors.maker().cloned(), ..Stats::default() };
        view.each_term(view.fields.scope, &mut |scope, count| {
            let namespace = scope.split(':').next().unwrap_or_default();
            *stats.by_namespace.entry(namespace.to_owned()).or_default() += count;
            stats.records += count;
        })?;
        view.each_term(view.fields.kind, &mut |kind, count| {
            *stats.by_type.entry(kind.to_owned()).or_default() += count;
        })?;
        view.each_term(view.fields.noted, &mut |_, _| stats.sources += 1)?;
        (stats.passages, stats.with_vector) = view.passages()?;
        stats.bytes = folder::size(&self.dir);
        Ok(stats)
    }

    fn sources(&self) -> Result<BTreeMap<String, Digest>> {
        let view = self.view()?;
        let mut sources = BTreeMap::new();
        view.each_note(&mut |noted: Noted| {
            sources.insert(noted.source, noted.digest);
            Ok(())
        })?;
        Ok(sources)
    }

    fn of_source(&self, source: &str) -> Result<Vec<Known>> {
        let view = self.view()?;
        let term = Term::from_field_text(view.fields.source, source);
        let mut known = Vec::new();
        for segment in view.searcher.segment_readers() {
            let column = |name| segment.fast_fields().u64(name).map_err(damaged);
            let (keys, digests) = (column("key")?, column("digest")?);
            let of = |doc: u32| Known {
                key: Key(keys.first(doc).unwrap_or_default()),
                digest: digests.first(doc).unwrap_or_default(),
            };
            known.extend(view.documents(segment, &term)?.into_iter().map(of));
        }
        Ok(known)
    }

    fn maker(&self) -> Result<Option<Maker>> {
        Ok(self.view()?.vectors.maker().cloned())
    }

    fn without_vector(&self) -> Result<Vec<Key>> {
        self.view()?.without_vector()
    }

    fn write(&self) -> Result<Box<dyn Write + '_>> {
        Ok(Box::new(Writer::begin(self)?))
    }

    fn rebuild(&self) -> Result<()> {
        writer::rebuild(self)
    }
}

/// An index that cannot be read, in the words of the error.
fn damaged(error: TantivyError) -> Error {
    Error::Damaged(error.to_string())
}

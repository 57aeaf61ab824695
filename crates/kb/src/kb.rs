//! The knowledge base: a store and the embedder that makes its vectors. All methods block.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolwright_capabilities::{CapabilityError, Embedder};

use crate::ingest::{Defaults, Ingest, Progress, Report};
use crate::passages;
use crate::record::{Record, RecordKey};
use crate::relevance;
use crate::search::{self, Hit, Query, QueryVector};
use crate::store::{self, Backend, EmbedderId, Error, Result, StoreWriter};

/// Returns the embedder, or why there is none and how to fix it. Called for each search, because a model may be
/// installed while a server runs.
pub type EmbedderSource = Arc<dyn Fn() -> std::result::Result<Arc<dyn Embedder>, String> + Send + Sync>;

/// The number of records, and of passages, that are embedded in one batch.
const BATCH_SIZE: usize = 256;
/// How long [`Kb::embed`] waits for another writer, and how often it retries.
const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const WRITE_LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// How a search was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retrieval {
    /// By keyword and by vector.
    Hybrid,
    /// By keyword only: there are no vectors, or the query could not be embedded.
    Keyword,
}

impl Retrieval {
    /// The value of `meta.retrieval` in an envelope.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Keyword => "keyword",
        }
    }
}

/// An open knowledge base.
pub struct Kb {
    pub store: Box<dyn Backend>,
    embedder_source: EmbedderSource,
    /// The last reason for a keyword-only search, so that it is logged once.
    last_warning: Mutex<String>,
    /// The mean cosine of unrelated texts, measured once, and the name of its embedder.
    unrelated_cosine: Mutex<Option<(String, f32)>>,
}

impl fmt::Debug for Kb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kb").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Kb {
    /// Opens the store at the URL; an embedded one is created if it does not exist.
    pub fn open(url: &str, embedder_source: EmbedderSource) -> Result<Self> {
        Ok(Self::new(store::open(url)?, embedder_source))
    }

    pub fn new(store: Box<dyn Backend>, embedder_source: EmbedderSource) -> Self {
        Self { store, embedder_source, last_warning: Mutex::default(), unrelated_cosine: Mutex::default() }
    }

    /// The best records, and how they were found.
    pub fn search(&self, query: &Query) -> Result<(Vec<Hit>, Retrieval)> {
        // Without a letter or digit, the vector of a query means nothing.
        if !query.text.contains(char::is_alphanumeric) {
            return Ok((Vec::new(), Retrieval::Keyword));
        }
        let (vector, retrieval) = match self.embed_query(&query.text)? {
            Ok(vector) => {
                self.last_warning().clear();
                (Some(vector), Retrieval::Hybrid)
            }
            Err(reason) => {
                self.warn_once(&format!("search falls back to keywords: {reason}"));
                (None, Retrieval::Keyword)
            }
        };
        Ok((search::search(&*self.store, query, vector.as_ref())?, retrieval))
    }

    /// The records with these ids that the user may read; without a user, all of them.
    pub fn get(&self, ids: &[String], user: Option<&str>) -> Result<Vec<Record>> {
        let keys: Vec<RecordKey> = ids.iter().map(|id| RecordKey::from_id(id)).collect();
        let records = self.store.fetch(&keys)?.into_iter().map(|record| (record.id.clone(), record));
        let mut records: HashMap<String, Record> = records.collect();
        let found = ids.iter().filter_map(|id| records.remove(id));
        Ok(found.filter(|record| user.is_none_or(|user| record.is_readable_by(user))).collect())
    }

    /// Removes records. Returns the ids that existed.
    pub fn remove(&self, ids: &[String]) -> Result<Vec<String>> {
        let existing: Vec<String> = self.get(ids, None)?.into_iter().map(|record| record.id).collect();
        let mut writer = self.store.begin_write()?;
        for id in &existing {
            writer.remove(RecordKey::from_id(id))?;
        }
        writer.commit()?;
        Ok(existing)
    }

    /// Updates the store from files and directories. [`Kb::embed`] makes the vectors.
    pub fn add(
        &self,
        base: &Path,
        paths: &[PathBuf],
        defaults: &Defaults,
        progress: &Progress,
    ) -> Result<Report> {
        Ingest { base, defaults, progress }.run(&*self.store, paths)
    }

    /// Makes the missing vectors, in batches, and returns their number. Does nothing without an embedder.
    pub fn embed(&self, progress: &Progress) -> Result<usize> {
        let Ok(embedder) = (self.embedder_source)() else { return Ok(0) };
        let id = embedder_id(embedder.as_ref())?;
        if let Some(stored) = self.store.embedder()?.filter(|stored| *stored != id) {
            return Err(mismatch(&stored, &id));
        }
        let missing = self.store.keys_without_vector()?;
        progress.total.store(missing.len(), Ordering::Relaxed);
        let mut embedded = HashSet::new();
        for keys in missing.chunks(BATCH_SIZE) {
            let records = self.store.fetch(keys)?;
            let mut passages: Vec<passages::Passage> =
                records.iter().flat_map(passages::split_record).collect();
            passages.retain(|passage| embedded.insert(passage.key));
            for batch in passages.chunks(BATCH_SIZE) {
                let texts: Vec<&str> = batch.iter().map(|passage| passage.text.as_str()).collect();
                let vectors = embedder.embed(&texts).map_err(|fault| Error::Embedding(fault.message))?;
                let keyed: Vec<_> = batch.iter().map(|passage| passage.key).zip(vectors).collect();
                // The lock is released after each batch, so that others can write in between.
                self.wait_for_writer()?.put_vectors(&id, &keyed)?;
            }
            progress.done.fetch_add(keys.len(), Ordering::Relaxed);
        }
        Ok(embedded.len())
    }

    /// Whether there is an embedder but no vector yet, as after the installation of a model.
    pub fn lacks_vectors(&self) -> bool {
        (self.embedder_source)().is_ok() && matches!(self.store.embedder(), Ok(None))
    }

    /// Retries until another writer has released its lock.
    fn wait_for_writer(&self) -> Result<Box<dyn StoreWriter + '_>> {
        let deadline = Instant::now() + WRITE_LOCK_TIMEOUT;
        loop {
            match self.store.begin_write() {
                Err(Error::Locked) if Instant::now() < deadline => {
                    std::thread::sleep(WRITE_LOCK_RETRY_INTERVAL);
                }
                result => return result,
            }
        }
    }

    /// Rebuilds the index. Drops the vectors if they are not from the configured embedder.
    pub fn rebuild(&self) -> Result<()> {
        if let (Ok(embedder), Some(stored)) = ((self.embedder_source)(), self.store.embedder()?) {
            // While a service is unreachable, its vectors are kept.
            let is_unreachable = embedder.name() == stored.name && embedder.dimensions().is_err();
            if !is_unreachable && embedder_id(embedder.as_ref())? != stored {
                self.store.begin_write()?.drop_vectors()?;
            }
        }
        self.store.rebuild()
    }

    /// The vector of a query, or why the search must use keywords only.
    fn embed_query(&self, text: &str) -> Result<std::result::Result<QueryVector, String>> {
        let embedder = match (self.embedder_source)() {
            Ok(embedder) => embedder,
            Err(reason) => return Ok(Err(reason)),
        };
        let Some(stored) = self.store.embedder()? else {
            return Ok(Err("no record has a vector; run `toolwright kb rebuild`".to_owned()));
        };
        let configured = |dimensions| EmbedderId { name: embedder.name().to_owned(), dimensions };
        if embedder.name() != stored.name {
            return Ok(Err(mismatch(&stored, &configured(stored.dimensions)).to_string()));
        }
        Ok(match embedder.embed_query(text) {
            Ok(values) if values.len() == stored.dimensions => {
                let unrelated_cosine = self.unrelated_cosine(embedder.as_ref());
                unrelated_cosine
                    .map(|unrelated_cosine| QueryVector { values, unrelated_cosine })
                    .map_err(|fault| fault.to_string())
            }
            Ok(vector) => Err(mismatch(&stored, &configured(vector.len())).to_string()),
            Err(fault) => Err(fault.to_string()),
        })
    }

    /// The mean cosine of unrelated texts by this embedder.
    fn unrelated_cosine(&self, embedder: &dyn Embedder) -> std::result::Result<f32, CapabilityError> {
        if let Some(known) = embedder.unrelated_cosine() {
            return Ok(known);
        }
        let mut measured = self.unrelated_cosine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cosine)) = measured.as_ref().filter(|(name, _)| name == embedder.name()) {
            return Ok(*cosine);
        }
        let cosine = relevance::measure_unrelated_cosine(|texts| embedder.embed(texts))?;
        *measured = Some((embedder.name().to_owned(), cosine));
        Ok(cosine)
    }

    fn last_warning(&self) -> MutexGuard<'_, String> {
        self.last_warning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a warning unless it repeats the last one.
    fn warn_once(&self, message: &str) {
        let mut last = self.last_warning();
        if *last != message {
            tracing::warn!("{message}");
            message.clone_into(&mut last);
        }
    }
}

/// Names the length of the vectors if only that differs.
fn mismatch(stored: &EmbedderId, configured: &EmbedderId) -> Error {
    let configured = match stored.name == configured.name {
        true => format!("{} with {} dimensions", configured.name, configured.dimensions),
        false => configured.name.clone(),
    };
    Error::EmbedderMismatch { stored: stored.name.clone(), configured }
}

fn embedder_id(embedder: &dyn Embedder) -> Result<EmbedderId> {
    let name = embedder.name().to_owned();
    match embedder.dimensions() {
        Ok(0) => Err(Error::Embedding(format!("`{name}` returned a vector without dimensions"))),
        Ok(dimensions) => Ok(EmbedderId { name, dimensions }),
        Err(fault) => Err(Error::Embedding(fault.message)),
    }
}

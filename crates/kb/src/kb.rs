//! The knowledge base as a whole: a store, what makes vectors for it, and what is done with both. All of it blocks.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolwright_capabilities::Embedder;

use crate::ingest::{Defaults, Ingest, Progress, Report};
use crate::passages;
use crate::record::{Key, Record};
use crate::search::{self, Hit, Query};
use crate::store::{Backend, Error, Maker, Result, Store};

/// Gives what makes vectors, or says why there is nothing and what mends it. Asked each time: a model may be installed
/// while a server runs.
pub type Embedders = Arc<dyn Fn() -> std::result::Result<Arc<dyn Embedder>, String> + Send + Sync>;

/// Records that are read at a time to get their vectors, and vectors that are kept at a time.
const BATCH: usize = 256;
/// How long the making of vectors waits for another writer.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How a search was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retrieval {
    /// By words and by vector.
    Hybrid,
    /// By words alone: there are no vectors, or nothing that could make one of the query.
    Keyword,
}

impl Retrieval {
    /// As it is told beside an answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Keyword => "keyword",
        }
    }
}

/// A knowledge base that is open.
pub struct Kb {
    pub store: Store,
    embedders: Embedders,
    /// Why the last search by words alone was one.
    told: Mutex<String>,
}

impl fmt::Debug for Kb {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Kb").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Kb {
    /// Opens what the address names; an embedded one is made where there is none.
    pub fn open(url: &str, embedders: Embedders) -> Result<Self> {
        Ok(Self::of(Store::open(url)?, embedders))
    }

    /// A knowledge base over an open store.
    pub fn of(store: Store, embedders: Embedders) -> Self {
        Self { store, embedders, told: Mutex::default() }
    }

    /// The best records, and how they were looked for.
    pub fn search(&self, query: &Query) -> Result<(Vec<Hit>, Retrieval)> {
        // Without a letter or a digit anything would be as near as anything else.
        if !query.text.contains(char::is_alphanumeric) {
            return Ok((Vec::new(), Retrieval::Keyword));
        }
        let vector = self.vector_of(&query.text)?;
        let retrieval = if vector.is_some() { Retrieval::Hybrid } else { Retrieval::Keyword };
        let hits = search::search(&self.store, query, vector.as_deref())?;
        Ok((hits, retrieval))
    }

    /// The records with these ids that the user may read; those of everybody when no user is named.
    pub fn get(&self, ids: &[String], user: Option<&str>) -> Result<Vec<Record>> {
        let keys: Vec<Key> = ids.iter().map(|id| Key::of(id)).collect();
        let records = self.store.fetch(&keys)?.into_iter().map(|record| (record.id.clone(), record));
        let mut records: HashMap<String, Record> = records.collect();
        let found = ids.iter().filter_map(|id| records.remove(id));
        Ok(found.filter(|record| user.is_none_or(|user| record.is_readable_by(user))).collect())
    }

    /// Removes records; the ids that were there.
    pub fn remove(&self, ids: &[String]) -> Result<Vec<String>> {
        let there: Vec<String> = self.get(ids, None)?.into_iter().map(|record| record.id).collect();
        let mut writer = self.store.write()?;
        for id in &there {
            writer.remove(Key::of(id))?;
        }
        writer.commit()?;
        Ok(there)
    }

    /// Brings the store to what files and directories hold now. Vectors are made by [`Kb::embed`].
    pub fn add(
        &self,
        base: &std::path::Path,
        paths: &[PathBuf],
        defaults: &Defaults,
        progress: &Progress,
    ) -> Result<Report> {
        Ingest { base, defaults, progress }.run(&self.store, paths)
    }

    /// Makes the vectors that are missing; how many. Without an embedder there is nothing to do.
    pub fn embed(&self, progress: &Progress) -> Result<usize> {
        let Ok(embedder) = (self.embedders)() else { return Ok(0) };
        let maker = maker(embedder.as_ref())?;
        if let Some(kept) = self.store.maker()?.filter(|kept| *kept != maker) {
            let length = if kept.name == maker.name {
                format!(" with {} numbers", maker.dimensions)
            } else {
                String::new()
            };
            return Err(Error::OtherEmbedder { kept: kept.name, asked: format!("{}{length}", maker.name) });
        }
        let lacking = self.store.without_vector()?;
        if lacking.is_empty() {
            return Ok(0);
        }
        progress.total.store(lacking.len(), Ordering::Relaxed);
        let mut made = HashSet::new();
        for keys in lacking.chunks(BATCH) {
            let records = self.store.fetch(keys)?;
            let mut passages: Vec<passages::Passage> = records.iter().flat_map(passages::of).collect();
            passages.retain(|passage| made.insert(passage.key));
            for part in passages.chunks(BATCH) {
                let texts: Vec<&str> = part.iter().map(|passage| passage.text.as_str()).collect();
                let vectors = embedder.embed(&texts).map_err(|fault| Error::NoVectors(fault.message))?;
                let keyed: Vec<_> = part.iter().map(|passage| passage.key).zip(vectors).collect();
                // A batch at a time: others may write in between.
                self.writer()?.put_vectors(&maker, &keyed)?;
            }
            progress.done.fetch_add(keys.len(), Ordering::Relaxed);
        }
        Ok(made.len())
    }

    /// Whether an embedder is set up while no record has a vector: a model was installed later.
    pub fn awaits_vectors(&self) -> bool {
        (self.embedders)().is_ok() && matches!(self.store.maker(), Ok(None))
    }

    /// The right to write, after a little waiting for whoever has it.
    fn writer(&self) -> Result<Box<dyn crate::store::Write + '_>> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            match self.store.write() {
                Err(Error::Busy) if Instant::now() < give_up => std::thread::sleep(LOOK_AGAIN),
                other => return other,
            }
        }
    }

    /// Makes the index anew; vectors of another embedder than the one that is set up are dropped.
    pub fn rebuild(&self) -> Result<()> {
        if let (Ok(embedder), Some(kept)) = ((self.embedders)(), self.store.maker()?) {
            // A service that is away: its own vectors stay, and another's are not dropped for it.
            let is_away = embedder.name() == kept.name && embedder.dimensions().is_err();
            if !is_away && maker(embedder.as_ref())? != kept {
                self.store.write()?.drop_vectors()?;
            }
        }
        self.store.rebuild()
    }

    /// A query's vector, if the kept ones and what is set up allow for one.
    fn vector_of(&self, text: &str) -> Result<Option<Vec<f32>>> {
        let embedder = match (self.embedders)() {
            Ok(embedder) => embedder,
            Err(why) => {
                self.warn(&format!("the search is by words alone: {why}"));
                return Ok(None);
            }
        };
        let Some(maker) = self.store.maker()? else {
            self.warn(
                "the search is by words alone: no record has a vector yet; run `toolwright kb rebuild`, which makes them",
            );
            return Ok(None);
        };
        let other = |asked: String| Error::OtherEmbedder { kept: maker.name.clone(), asked };
        if embedder.name() != maker.name {
            self.warn(&format!("the search is by words alone: {}", other(embedder.name().to_owned())));
            return Ok(None);
        }
        match embedder.embed_query(text) {
            Ok(vector) if vector.len() == maker.dimensions => Ok(Some(vector)),
            Ok(vector) => {
                let asked = format!("{} with {} numbers", maker.name, vector.len());
                self.warn(&format!("the search is by words alone: {}", other(asked)));
                Ok(None)
            }
            Err(fault) => {
                tracing::warn!("the query has no vector, the search is by words alone: {fault}");
                Ok(None)
            }
        }
    }

    /// Told once: it holds for every search, until there is another reason.
    fn warn(&self, message: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != message {
            tracing::warn!("{message}");
            message.clone_into(&mut told);
        }
    }
}

fn maker(embedder: &dyn Embedder) -> Result<Maker> {
    match embedder.dimensions() {
        Err(fault) => Err(Error::NoVectors(fault.message)),
        Ok(0) => {
            Err(Error::NoVectors(format!("`{}` does not say how long its vectors are", embedder.name())))
        }
        Ok(dimensions) => Ok(Maker { name: embedder.name().to_owned(), dimensions }),
    }
}

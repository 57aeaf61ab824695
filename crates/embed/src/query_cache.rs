//! A cache for query vectors: people and models repeat their queries.

use std::collections::HashMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolwright_capabilities::{CapabilityError, Embedder};

/// The maximum number of vectors in each of the two generations.
const GENERATION_SIZE: usize = 1024;
/// Longer queries are not cached.
const MAX_CACHED_QUERY_BYTES: usize = 2048;

/// An embedder with a cache for [`Embedder::embed_query`].
#[derive(Debug)]
pub(crate) struct QueryCache<E> {
    inner: E,
    generations: Mutex<Generations>,
}

/// An approximate LRU cache. When `young` is full it replaces `old`; a hit in `old` moves the entry to `young`.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<String, Vec<f32>>,
    old: HashMap<String, Vec<f32>>,
}

impl<E: Embedder> QueryCache<E> {
    pub(crate) fn new(inner: E) -> Self {
        Self { inner, generations: Mutex::default() }
    }

    fn generations(&self) -> MutexGuard<'_, Generations> {
        // The maps stay consistent after a panic: inserting is the last step.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Embedder> Embedder for QueryCache<E> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        self.inner.dimensions()
    }

    /// Not cached: the texts of an ingest would evict the queries.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        self.inner.embed(texts)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, CapabilityError> {
        if text.len() > MAX_CACHED_QUERY_BYTES {
            return self.inner.embed_query(text);
        }
        if let Some(vector) = self.generations().get(text) {
            return Ok(vector);
        }
        let vector = self.inner.embed_query(text)?;
        self.generations().insert(text, vector.clone());
        Ok(vector)
    }
}

impl Generations {
    fn get(&mut self, text: &str) -> Option<Vec<f32>> {
        if let Some(vector) = self.young.get(text) {
            return Some(vector.clone());
        }
        let vector = self.old.remove(text)?;
        self.insert(text, vector.clone());
        Some(vector)
    }

    fn insert(&mut self, text: &str, vector: Vec<f32>) {
        if self.young.len() >= GENERATION_SIZE {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(text.to_owned(), vector);
    }
}

#[cfg(test)]
#[path = "query_cache_tests.rs"]
mod tests;

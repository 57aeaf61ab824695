//! A cache for query vectors: people and models repeat their queries.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use toolwright_capabilities::{CapabilityError, Embedder};

const MAX_CACHED_QUERIES: NonZeroUsize = NonZeroUsize::new(2048).unwrap();
/// Longer queries are not cached.
const MAX_CACHED_QUERY_BYTES: usize = 2048;

/// An embedder with a cache for [`Embedder::embed_query`].
#[derive(Debug)]
pub(crate) struct QueryCache<E> {
    inner: E,
    vectors: Mutex<LruCache<String, Vec<f32>>>,
}

impl<E: Embedder> QueryCache<E> {
    pub(crate) fn new(inner: E) -> Self {
        Self { inner, vectors: Mutex::new(LruCache::new(MAX_CACHED_QUERIES)) }
    }

    fn vectors(&self) -> MutexGuard<'_, LruCache<String, Vec<f32>>> {
        self.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Embedder> Embedder for QueryCache<E> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        self.inner.dimensions()
    }

    fn unrelated_cosine(&self) -> Option<f32> {
        self.inner.unrelated_cosine()
    }

    /// Not cached: the texts of an ingest would evict the queries.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        self.inner.embed(texts)
    }

    fn embed_query(&self, text: &str) -> Result<Vec<f32>, CapabilityError> {
        if text.len() > MAX_CACHED_QUERY_BYTES {
            return self.inner.embed_query(text);
        }
        if let Some(vector) = self.vectors().get(text) {
            return Ok(vector.clone());
        }
        let vector = self.inner.embed_query(text)?;
        self.vectors().put(text.to_owned(), vector.clone());
        Ok(vector)
    }
}

#[cfg(test)]
#[path = "query_cache_tests.rs"]
mod tests;

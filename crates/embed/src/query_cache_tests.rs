#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Counts the texts that it embeds; a text's vector is its length.
#[derive(Debug, Default)]
struct CountingEmbedder {
    texts: AtomicUsize,
}

impl Embedder for CountingEmbedder {
    fn name(&self) -> &str {
        "counting"
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        Ok(1)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        Ok(texts.iter().map(|text| vec![text.len() as f32]).collect())
    }
}

impl QueryCache<CountingEmbedder> {
    fn embedded_texts(&self) -> usize {
        self.inner.texts.load(Ordering::SeqCst)
    }
}

#[test]
fn a_repeated_query_is_embedded_once() {
    let cache = QueryCache::new(CountingEmbedder::default());
    let vectors: Vec<_> =
        ["who", "where", "who", "where"].iter().map(|text| cache.embed_query(text).unwrap()).collect();
    assert_eq!(vectors, [[3.0], [5.0], [3.0], [5.0]]);
    assert_eq!(cache.embedded_texts(), 2);
}

#[test]
fn an_ingest_is_not_cached() {
    let cache = QueryCache::new(CountingEmbedder::default());
    cache.embed(&["document", "document"]).unwrap();
    cache.embed(&["document"]).unwrap();
    assert_eq!(cache.embedded_texts(), 3);
}

#[test]
fn frequent_queries_stay_cached_and_memory_is_bounded() {
    let cache = QueryCache::new(CountingEmbedder::default());
    let count = MAX_CACHED_QUERIES.get() * 3;
    for number in 0..count {
        cache.embed_query("again").unwrap();
        cache.embed_query(&format!("query {number}")).unwrap();
    }
    assert_eq!(cache.embedded_texts(), 1 + count);
    assert_eq!(cache.vectors().len(), MAX_CACHED_QUERIES.get());
}

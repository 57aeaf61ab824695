//! Test fixtures: empty stores, records, and deterministic vectors.

use std::path::Path;

use tempfile::TempDir;
use toolwright_kb::record::{Record, RecordKey};
use toolwright_kb::store::{
    Backend, Candidate, CandidateLists, CandidateQuery, Embedded, EmbedderId, Filter,
};
use toolwright_kb::{Namespace, passages};

pub type Store = Box<dyn Backend>;

/// An empty store of the back end under test.
pub trait StoreFixture {
    fn new() -> Self;

    /// A separate handle on the store, as another process would have.
    fn open(&self) -> Store;
}

pub struct EmbeddedFixture(TempDir);

impl StoreFixture for EmbeddedFixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Store {
        Box::new(Embedded::open(self.0.path()).unwrap())
    }
}

impl EmbeddedFixture {
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

pub fn record(id: &str, title: &str, text: &str) -> Record {
    Record {
        id: id.to_owned(),
        kind: id.split(':').next().unwrap().to_owned(),
        title: title.to_owned(),
        text: text.to_owned(),
        namespace: Namespace::Studio,
        owner: None,
        tags: Vec::new(),
        source_type: None,
        last_updated: None,
        url: None,
        metadata: serde_json::Map::new(),
        sources: Vec::new(),
    }
    .validate()
    .unwrap()
}

/// Puts records in one commit.
pub fn put(store: &Store, records: &[Record]) {
    let mut writer = store.begin_write().unwrap();
    for record in records {
        writer.put(record, "test.jsonl").unwrap();
    }
    writer.commit().unwrap();
}

pub fn embedder_id(dimensions: usize) -> EmbedderId {
    EmbedderId { name: format!("test-{dimensions}"), dimensions }
}

/// Stores a vector for the first passage of each record.
pub fn put_vectors(store: &Store, vectors: &[(&Record, Vec<f32>)]) {
    let keyed =
        |(record, vector): &(&Record, Vec<f32>)| (passages::split_record(record)[0].key, vector.clone());
    let vectors: Vec<_> = vectors.iter().map(keyed).collect();
    let embedder = embedder_id(vectors[0].1.len());
    store.begin_write().unwrap().put_vectors(&embedder, &vectors).unwrap();
}

/// A normalized vector, determined by its seed.
pub fn vector(seed: u64, dimensions: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut values: Vec<f32> = (0..dimensions)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
        })
        .collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter_mut().for_each(|value| *value /= length);
    values
}

pub fn search(
    store: &Store,
    text: &str,
    vector: Option<&[f32]>,
    filter: &Filter,
    limit: usize,
) -> CandidateLists {
    store.find_candidates(&CandidateQuery { text, vector, filter, limit, deadline: None }).unwrap()
}

/// The ids of candidates among these records.
pub fn ids(candidates: &[Candidate], records: &[Record]) -> Vec<String> {
    let id = |key: RecordKey| records.iter().find(|record| record.key() == key).unwrap().id.clone();
    candidates.iter().map(|candidate| id(candidate.key)).collect()
}

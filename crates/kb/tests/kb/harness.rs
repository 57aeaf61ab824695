//! What the rules need: a fresh knowledge base, records, and vectors that can be checked by hand.

use std::path::Path;

use tempfile::TempDir;
use toolwright_kb::record::{Key, Record};
use toolwright_kb::store::{Backend, Candidate, Embedded, Filter, Found, Maker, Search, Store};
use toolwright_kb::{Namespace, passages};

/// A back end under test.
pub trait Harness {
    /// Somewhere new, with nothing in it.
    fn fresh() -> Self;

    /// A handle of its own on it, as another process would have.
    fn open(&self) -> Store;
}

pub struct InDirectory(TempDir);

impl Harness for InDirectory {
    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Store {
        Store::Embedded(Embedded::open(self.0.path()).unwrap())
    }
}

impl InDirectory {
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
    .checked()
    .unwrap()
}

/// Puts records in one commit.
pub fn put(store: &Store, records: &[Record]) {
    let mut writer = store.write().unwrap();
    for record in records {
        writer.put(record, "test.jsonl").unwrap();
    }
    writer.commit().unwrap();
}

pub fn maker(dimensions: usize) -> Maker {
    Maker { name: format!("test-{dimensions}"), dimensions }
}

/// Gives the first passage of each record a vector.
pub fn put_vectors(store: &Store, vectors: &[(&Record, Vec<f32>)]) {
    let of = |(record, vector): &(&Record, Vec<f32>)| (passages::of(record)[0].key, vector.clone());
    let vectors: Vec<_> = vectors.iter().map(of).collect();
    let maker = maker(vectors[0].1.len());
    store.write().unwrap().put_vectors(&maker, &vectors).unwrap();
}

/// A vector of length 1, always the same for one seed.
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

pub fn search(store: &Store, words: &str, vector: Option<&[f32]>, filter: &Filter, limit: usize) -> Found {
    store.search(&Search { words, vector, filter, limit, deadline: None }).unwrap()
}

/// The ids of candidates, as far as they are among these records.
pub fn ids(candidates: &[Candidate], records: &[Record]) -> Vec<String> {
    let id = |key: Key| records.iter().find(|record| record.key() == key).unwrap().id.clone();
    candidates.iter().map(|candidate| id(candidate.key)).collect()
}

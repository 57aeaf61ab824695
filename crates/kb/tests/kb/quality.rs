//! How good answers are on public test sets, when `TOOLWRIGHT_CORPORA` names their folder: nDCG@10 by words, by vector and
//! by both, in every back end, against what was measured with other programs beforehand.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolwright_capabilities::{CapabilityError, Embedder};
use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::search::{Query, search};
use toolwright_kb::store::{Backend as _, Filter, Search, Store};
use toolwright_kb::{Embedders, Kb};

use crate::harness::{Harness, InDirectory};
use crate::pgvector::Database;

/// A set, what BM25 reaches alone, and what both reach together. A larger set is in the benchmark: its vectors take too
/// long for a test.
const BARS: [(&str, f64, f64); 2] = [("cranfield", 0.508, 0.561), ("cisi", 0.369, 0.447)];
const TOLERANCE: f64 = 0.005;

#[test]
fn answers_are_as_good_as_was_measured_in_every_back_end() {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: the quality of answers is not measured");
        return;
    };
    for (name, by_words, together) in BARS {
        let set = Set::read(&Path::new(&folder).join("kb").join(name));
        // Both back ends ask for the same vectors.
        let embedder = Arc::new(Remembering::of(name));
        let (directory, database) = (InDirectory::fresh(), Database::fresh());
        for (place, store) in [("embedded", directory.open()), ("postgres", database.open())] {
            let [words, vectors, hybrid] = set.reached(store, Arc::clone(&embedder));
            embedder.keep();
            let told =
                format!("{name}, {place}: by words {words:.4}, by vector {vectors:.4}, both {hybrid:.4}");
            eprintln!("{told}");
            assert!(words >= by_words, "{told}");
            assert!(hybrid >= together - TOLERANCE, "{told}");
            assert!(hybrid >= words.max(vectors) - TOLERANCE, "{told}");
        }
    }
}

/// The model that `scripts/test` installs.
fn model() -> Arc<dyn Embedder> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models");
    let models = std::env::var_os("TOOLWRIGHT_MODELS").map_or_else(|| default.into(), PathBuf::from);
    toolwright_embed::open(&toolwright_embed::Settings { models, endpoint: None })
        .unwrap_or_else(|error| panic!("{error}: run scripts/model, which installs it below target/"))
}

/// Makes each vector once, and keeps them below `target/` for the next run: it takes minutes.
#[derive(Debug)]
struct Remembering {
    inner: Arc<dyn Embedder>,
    file: PathBuf,
    made: Mutex<HashMap<u64, Vec<f32>>>,
}

impl Remembering {
    fn of(name: &str) -> Self {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.vectors"));
        let inner = model();
        let kept = std::fs::read(&file).unwrap_or_default();
        let vector = |row: &[u8]| -> (u64, Vec<f32>) {
            let (key, numbers) = row.split_at(8);
            let numbers = numbers.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
            (u64::from_le_bytes(key.try_into().unwrap()), numbers.collect())
        };
        let made = kept.chunks_exact(8 + 4 * inner.dimensions().unwrap()).map(vector).collect();
        Self { inner, file, made: Mutex::new(made) }
    }

    fn key(&self, text: &str) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.inner.name(), text).hash(&mut hasher);
        hasher.finish()
    }

    fn keep(&self) {
        let made = self.made.lock().unwrap();
        let row = |(key, vector): (&u64, &Vec<f32>)| -> Vec<u8> {
            key.to_le_bytes()
                .into_iter()
                .chain(vector.iter().flat_map(|number| number.to_le_bytes()))
                .collect()
        };
        let bytes: Vec<u8> = made.iter().flat_map(row).collect();
        std::fs::write(self.file.with_extension("new"), bytes).unwrap();
        std::fs::rename(self.file.with_extension("new"), &self.file).unwrap();
    }
}

impl Embedder for Remembering {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        self.inner.dimensions()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        let keys: Vec<u64> = texts.iter().map(|text| self.key(text)).collect();
        let mut made = self.made.lock().unwrap();
        let missing: Vec<(u64, &str)> = keys
            .iter()
            .copied()
            .zip(texts.iter().copied())
            .filter(|(key, _)| !made.contains_key(key))
            .collect();
        if !missing.is_empty() {
            let (keys, texts): (Vec<u64>, Vec<&str>) = missing.into_iter().unzip();
            made.extend(keys.into_iter().zip(self.inner.embed(&texts)?));
        }
        Ok(keys.iter().map(|key| made[key].clone()).collect())
    }
}

/// Documents as lines that can be added, and queries with what is relevant for them.
struct Set {
    documents: String,
    queries: Vec<(String, HashMap<String, f64>)>,
}

impl Set {
    fn read(dir: &Path) -> Self {
        let rows = |name: &str| -> Vec<Value> {
            let text = std::fs::read_to_string(dir.join(name)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut documents = String::new();
        for mut document in rows("docs.jsonl") {
            // A record needs a title.
            if text(&document["title"]).trim().is_empty() {
                document["title"] = document["id"].clone();
            }
            documents.push_str(&format!("{document}\n"));
        }
        let mut judged: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for row in rows("qrels.jsonl") {
            let relevant = judged.entry(text(&row["query"])).or_default();
            relevant.insert(format!("doc:{}", text(&row["doc"])), row["rel"].as_f64().unwrap());
        }
        let rows = rows("queries.jsonl").into_iter();
        let queries = rows.filter_map(|row| Some((text(&row["text"]), judged.remove(&text(&row["id"]))?)));
        Self { documents, queries: queries.collect() }
    }

    /// nDCG@10 by words, by vector and by both.
    fn reached(&self, store: Store, embedder: Arc<Remembering>) -> [f64; 3] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docs.jsonl");
        std::fs::write(&path, &self.documents).unwrap();
        let given = Arc::clone(&embedder);
        let embedders: Embedders = Arc::new(move || Ok(Arc::clone(&given) as Arc<dyn Embedder>));
        let kb = Kb::of(store, embedders);
        let report = kb.add(dir.path(), &[path], &Defaults::default(), &Progress::default()).unwrap();
        assert_eq!(report.problems, []);
        kb.embed(&Progress::default()).unwrap();
        let mut totals = [0.0; 3];
        for (text, relevant) in &self.queries {
            let vector = embedder.embed(&[text]).unwrap().remove(0);
            let query = Query { text: text.clone(), filter: Filter::default(), top_k: 10, deadline: None };
            let asked = |vector: Option<&[f32]>| -> Vec<String> {
                let hits = search(&kb.store, &query, vector).unwrap();
                hits.into_iter().map(|hit| hit.record.id).collect()
            };
            let alone =
                Search { words: "", vector: Some(&vector), filter: &query.filter, limit: 10, deadline: None };
            let near = kb.store.search(&alone).unwrap().vectors;
            let near =
                near.iter().flat_map(|hit| kb.store.fetch(&[hit.key]).unwrap()).map(|record| record.id);
            let found = [asked(None), near.collect(), asked(Some(&vector))];
            for (total, ids) in totals.iter_mut().zip(found) {
                *total += ndcg(&ids, relevant);
            }
        }
        totals.map(|total| total / self.queries.len() as f64)
    }
}

fn ndcg(ids: &[String], relevant: &HashMap<String, f64>) -> f64 {
    let mut best: Vec<f64> = relevant.values().copied().collect();
    best.sort_by(|left, right| right.total_cmp(left));
    let gains = ids.iter().map(|id| relevant.get(id).copied().unwrap_or(0.0));
    discounted(gains) / discounted(best.into_iter().take(10))
}

fn discounted(gains: impl Iterator<Item = f64>) -> f64 {
    gains.enumerate().map(|(at, gain)| gain / (at as f64 + 2.0).log2()).sum()
}

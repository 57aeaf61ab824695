//! Retrieval quality on public test sets, if `TOOLWRIGHT_CORPORA` names their directory: nDCG@10 of keyword, vector and
//! hybrid search in every back end, compared with the figures of other programs.

use std::collections::HashMap;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolwright_capabilities::{CapabilityError, Embedder};
use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::relevance::DEFAULT_MIN_SCORE;
use toolwright_kb::search::{Query, QueryVector, search};
use toolwright_kb::store::{CandidateQuery, Filter};
use toolwright_kb::{EmbedderSource, Kb};

use crate::postgres::PostgresFixture;
use crate::support::{EmbeddedFixture, Store, StoreFixture};

/// A test set and the required nDCG@10 of keyword and hybrid search. A larger set is only in the benchmark: its vectors take
/// too long for a test.
const REQUIRED: [(&str, f64, f64); 2] = [("cranfield", 0.508, 0.561), ("cisi", 0.369, 0.447)];
const TOLERANCE: f64 = 0.005;

/// How well the threshold has to separate what is relevant from what is not.
struct Threshold {
    /// The least share of unanswerable queries without a result.
    without_results: f64,
    /// The most that nDCG@10 of answerable queries may lose.
    loss: f64,
}

const HYBRID: Threshold = Threshold { without_results: 0.95, loss: 0.005 };
/// By keyword only, long queries share enough words with any text: many queries of `cisi` are whole abstracts, and a quarter
/// of them finds something in `cranfield`.
const KEYWORD: Threshold = Threshold { without_results: 0.94, loss: 0.0065 };

#[test]
fn retrieval_quality_is_as_required_in_every_back_end() {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: skipping the retrieval quality test");
        return;
    };
    let read = |name: &str| TestSet::read(&Path::new(&folder).join("kb").join(name));
    let sets = REQUIRED.map(|(name, ..)| read(name));
    let others = [("cranfield", &sets[0]), ("cisi", &sets[1]), ("scifact", &read("scifact"))];
    let mut unanswerable = [Shares::default(), Shares::default()];
    for (set, (name, required_keyword, required_hybrid)) in sets.iter().zip(REQUIRED) {
        let embedder = Arc::new(CachingEmbedder::open(name));
        let (directory, database) = (EmbeddedFixture::new(), PostgresFixture::new());
        for (back_end, store) in [("embedded", directory.open()), ("postgres", database.open())] {
            let kb = set.ingest(store, &embedder);
            embedder.save();
            let figures = set.measure(&kb, &embedder);
            let Figures { keyword, vector, hybrid } = figures;
            let result = format!("{name}, {back_end}: {figures:.4?}");
            eprintln!("{result}");
            assert!(keyword.all >= required_keyword, "{result}");
            assert!(hybrid.all >= required_hybrid - TOLERANCE, "{result}");
            assert!(hybrid.all >= keyword.all.max(vector) - TOLERANCE, "{result}");
            assert!(keyword.all - keyword.relevant < KEYWORD.loss, "{result}");
            assert!(hybrid.all - hybrid.relevant < HYBRID.loss, "{result}");
            // The queries of the other sets are about other subjects.
            for (other_name, other) in others.iter().filter(|(other, _)| *other != name) {
                let texts = || other.queries.iter().map(|(text, _)| text.as_str());
                let by_keyword: Vec<_> = texts().map(|text| (text, None)).collect();
                let by_both: Vec<_> = texts().map(|text| (text, Some(embedder.query_vector(text)))).collect();
                let shares = [by_keyword, by_both].map(|queries| share_without_results(&kb, &queries));
                eprintln!(
                    "{other_name} in {name}, {back_end}: nothing found by keyword, hybrid: {shares:.3?}"
                );
                for (total, share) in unanswerable.iter_mut().zip(shares) {
                    total.add(share, other.queries.len());
                }
            }
            embedder.save();
        }
    }
    let [keyword, hybrid] = unanswerable.map(|shares| shares.mean());
    eprintln!("unanswerable queries without results: {keyword:.3} by keyword, {hybrid:.3} hybrid");
    assert!(keyword >= KEYWORD.without_results && hybrid >= HYBRID.without_results, "{keyword} {hybrid}");
}

/// Shares of queries, and how many queries there are.
#[derive(Debug, Default, Clone, Copy)]
struct Shares {
    sum: f64,
    count: f64,
}

impl Shares {
    fn add(&mut self, share: f64, count: usize) {
        self.sum += share * count as f64;
        self.count += count as f64;
    }

    fn mean(self) -> f64 {
        self.sum / self.count
    }
}

/// The model that `scripts/test` installs.
fn model() -> Arc<dyn Embedder> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/models");
    let models = std::env::var_os("TOOLWRIGHT_MODELS").map_or_else(|| default.into(), PathBuf::from);
    toolwright_embed::open(&toolwright_embed::Settings { models, endpoint: None })
        .unwrap_or_else(|error| panic!("{error}: run scripts/model, which installs it below target/"))
}

/// Caches vectors in a file below `target/`, because embedding a test set takes minutes.
#[derive(Debug)]
struct CachingEmbedder {
    inner: Arc<dyn Embedder>,
    file: PathBuf,
    vectors: Mutex<HashMap<u64, Vec<f32>>>,
}

impl CachingEmbedder {
    fn open(name: &str) -> Self {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.vectors"));
        let inner = model();
        let bytes = std::fs::read(&file).unwrap_or_default();
        let vector = |row: &[u8]| -> (u64, Vec<f32>) {
            let (key, numbers) = row.split_at(8);
            let numbers = numbers.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four));
            (u64::from_le_bytes(key.try_into().unwrap()), numbers.collect())
        };
        let vectors = bytes.chunks_exact(8 + 4 * inner.dimensions().unwrap()).map(vector).collect();
        Self { inner, file, vectors: Mutex::new(vectors) }
    }

    fn query_vector(&self, text: &str) -> QueryVector {
        let values = self.embed(&[text]).unwrap().remove(0);
        QueryVector { values, unrelated_cosine: self.inner.unrelated_cosine().unwrap() }
    }

    fn key(&self, text: &str) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        (self.inner.name(), text).hash(&mut hasher);
        hasher.finish()
    }

    fn save(&self) {
        let vectors = self.vectors.lock().unwrap();
        let row = |(key, vector): (&u64, &Vec<f32>)| -> Vec<u8> {
            key.to_le_bytes()
                .into_iter()
                .chain(vector.iter().flat_map(|number| number.to_le_bytes()))
                .collect()
        };
        let bytes: Vec<u8> = vectors.iter().flat_map(row).collect();
        std::fs::write(self.file.with_extension("new"), bytes).unwrap();
        std::fs::rename(self.file.with_extension("new"), &self.file).unwrap();
    }
}

impl Embedder for CachingEmbedder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dimensions(&self) -> Result<usize, CapabilityError> {
        self.inner.dimensions()
    }

    fn unrelated_cosine(&self) -> Option<f32> {
        self.inner.unrelated_cosine()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, CapabilityError> {
        let keys: Vec<u64> = texts.iter().map(|text| self.key(text)).collect();
        let mut vectors = self.vectors.lock().unwrap();
        let missing: Vec<(u64, &str)> = keys
            .iter()
            .copied()
            .zip(texts.iter().copied())
            .filter(|(key, _)| !vectors.contains_key(key))
            .collect();
        if !missing.is_empty() {
            let (keys, texts): (Vec<u64>, Vec<&str>) = missing.into_iter().unzip();
            vectors.extend(keys.into_iter().zip(self.inner.embed(&texts)?));
        }
        Ok(keys.iter().map(|key| vectors[key].clone()).collect())
    }
}

/// Documents as JSONL, and queries with their relevance judgements.
struct TestSet {
    documents: String,
    queries: Vec<(String, HashMap<String, f64>)>,
}

impl TestSet {
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
        let mut judgements: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for row in rows("qrels.jsonl") {
            let relevant = judgements.entry(text(&row["query"])).or_default();
            relevant.insert(format!("doc:{}", text(&row["doc"])), row["rel"].as_f64().unwrap());
        }
        let rows = rows("queries.jsonl").into_iter();
        let queries =
            rows.filter_map(|row| Some((text(&row["text"]), judgements.remove(&text(&row["id"]))?)));
        Self { documents, queries: queries.collect() }
    }

    /// A knowledge base of the documents, with vectors.
    fn ingest(&self, store: Store, embedder: &Arc<CachingEmbedder>) -> Kb {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docs.jsonl");
        std::fs::write(&path, &self.documents).unwrap();
        let shared = Arc::clone(embedder);
        let source: EmbedderSource = Arc::new(move || Ok(Arc::clone(&shared) as Arc<dyn Embedder>));
        let kb = Kb::new(store, source);
        let report = kb.add(dir.path(), &[path], &Defaults::default(), &Progress::default()).unwrap();
        assert_eq!(report.problems, []);
        kb.embed(&Progress::default()).unwrap();
        kb
    }

    fn measure(&self, kb: &Kb, embedder: &CachingEmbedder) -> Figures {
        let mut figures = Figures::default();
        for (text, relevant) in &self.queries {
            let vector = embedder.query_vector(text);
            let filter = Filter::default();
            let vector_only = CandidateQuery {
                text: "",
                vector: Some(&vector.values),
                filter: &filter,
                limit: 10,
                deadline: None,
            };
            let near = kb.store.find_candidates(&vector_only).unwrap().vector;
            let near = near.iter().flat_map(|hit| kb.store.fetch(&[hit.key]).unwrap());
            figures.vector += ndcg(&near.map(|record| record.id).collect::<Vec<_>>(), relevant);
            for (ndcgs, vector) in [(&mut figures.keyword, None), (&mut figures.hybrid, Some(&vector))] {
                ndcgs.all += ndcg(&found(kb, text, vector, 0.0), relevant);
                ndcgs.relevant += ndcg(&found(kb, text, vector, DEFAULT_MIN_SCORE), relevant);
            }
        }
        figures.divided_by(self.queries.len() as f64)
    }
}

/// nDCG@10 of all results, and of those above the threshold.
#[derive(Debug, Default, Clone, Copy)]
struct Ndcg {
    all: f64,
    relevant: f64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Figures {
    keyword: Ndcg,
    vector: f64,
    hybrid: Ndcg,
}

impl Figures {
    fn divided_by(self, count: f64) -> Self {
        let mean = |ndcg: Ndcg| Ndcg { all: ndcg.all / count, relevant: ndcg.relevant / count };
        Self { keyword: mean(self.keyword), vector: self.vector / count, hybrid: mean(self.hybrid) }
    }
}

/// The ids of the first ten results.
fn found(kb: &Kb, text: &str, vector: Option<&QueryVector>, min_score: f32) -> Vec<String> {
    let query =
        Query { text: text.to_owned(), filter: Filter::default(), top_k: 10, min_score, deadline: None };
    search(&*kb.store, &query, vector).unwrap().into_iter().map(|hit| hit.record.id).collect()
}

/// The share of queries that find nothing above the threshold.
fn share_without_results(kb: &Kb, queries: &[(&str, Option<QueryVector>)]) -> f64 {
    let is_empty = |(text, vector): &&(&str, Option<QueryVector>)| {
        found(kb, text, vector.as_ref(), DEFAULT_MIN_SCORE).is_empty()
    };
    queries.iter().filter(is_empty).count() as f64 / queries.len() as f64
}

fn ndcg(ids: &[String], relevant: &HashMap<String, f64>) -> f64 {
    let mut best: Vec<f64> = relevant.values().copied().collect();
    best.sort_by(|left, right| right.total_cmp(left));
    let gains = ids.iter().map(|id| relevant.get(id).copied().unwrap_or(0.0));
    discounted_gain(gains) / discounted_gain(best.into_iter().take(10))
}

fn discounted_gain(gains: impl Iterator<Item = f64>) -> f64 {
    gains.enumerate().map(|(at, gain)| gain / (at as f64 + 2.0).log2()).sum()
}

//! Retrieval quality on public test sets, if `TOOLWRIGHT_CORPORA` names their directory: nDCG@10 of keyword, vector and
//! hybrid search in every back end, compared with the figures of other programs.
#![allow(clippy::print_stderr, reason = "prints the figures")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolwright_capabilities::Embedder;
use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::relevance::DEFAULT_MIN_SCORE;
use toolwright_kb::search::{Query, QueryVector, search};
use toolwright_kb::store::{CandidateQuery, Filter};
use toolwright_kb::{EmbedderSource, Kb};

use crate::postgres::PostgresFixture;
use crate::support::{EmbeddedFixture, Store, StoreFixture};
use crate::vector_cache::VectorCache;

/// A test set and the required nDCG@10 of keyword and hybrid search. A larger set is only in the benchmark: its vectors
/// take too long for a test.
const REQUIRED: [(&str, f64, f64); 2] = [("cranfield", 0.508, 0.561), ("cisi", 0.369, 0.447)];
const TOLERANCE: f64 = 0.005;

/// How well the threshold has to separate what is relevant from what is not: the least share of unanswerable queries
/// without a result, and the most that nDCG@10 of answerable queries may lose. By keyword only, this can be had for
/// these sets, but not in one that is several times as large: docs/reference/knowledge-base.md has the figures.
const MIN_WITHOUT_RESULTS: f64 = 0.95;
const MAX_LOSS: f64 = 0.005;

#[test]
fn retrieval_quality_is_as_required_in_the_embedded_back_end() {
    check_quality::<EmbeddedFixture>("embedded");
}

#[test]
fn retrieval_quality_is_as_required_in_postgres() {
    check_quality::<PostgresFixture>("postgres");
}

fn check_quality<F: StoreFixture>(back_end: &str) {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: skipping the retrieval quality test");
        return;
    };
    let read = |name: &str| TestSet::read(&Path::new(&folder).join("kb").join(name));
    let sets = REQUIRED.map(|(name, ..)| read(name));
    let others = [("cranfield", &sets[0]), ("cisi", &sets[1]), ("scifact", &read("scifact"))];
    let embedder = Arc::new(VectorCache::open());
    let queries: Vec<&str> = others.iter().flat_map(|(_, set)| set.query_texts()).collect();
    embedder.embed(&queries).unwrap();
    embedder.check(queries[0]);
    let mut unanswerable = [Shares::default(), Shares::default()];
    for (set, (name, required_keyword, required_hybrid)) in sets.iter().zip(REQUIRED) {
        let fixture = F::new();
        let kb = set.ingest(fixture.open(), &embedder);
        let figures = set.measure(&kb, &embedder);
        let Figures { keyword, vector, hybrid } = figures;
        let result = format!("{name}, {back_end}: {figures:.4?}");
        eprintln!("{result}");
        assert!(keyword.all >= required_keyword, "{result}");
        assert!(hybrid.all >= required_hybrid - TOLERANCE, "{result}");
        assert!(hybrid.all >= keyword.all.max(vector) - TOLERANCE, "{result}");
        assert!(keyword.all - keyword.relevant < MAX_LOSS, "{result}");
        assert!(hybrid.all - hybrid.relevant < MAX_LOSS, "{result}");
        // The queries of the other sets are about other subjects.
        for (other_name, other) in others.iter().filter(|(other, _)| *other != name) {
            let by_keyword: Vec<_> = other.query_texts().map(|text| (text, None)).collect();
            let by_both: Vec<_> =
                other.query_texts().map(|text| (text, Some(query_vector(&embedder, text)))).collect();
            let shares = [by_keyword, by_both].map(|queries| share_without_results(&kb, &queries));
            eprintln!("{other_name} in {name}, {back_end}: nothing found by keyword, hybrid: {shares:.3?}");
            for (total, share) in unanswerable.iter_mut().zip(shares) {
                total.add(share, other.queries.len());
            }
        }
    }
    let [keyword, hybrid] = unanswerable.map(|shares| shares.mean());
    eprintln!("unanswerable queries without results: {keyword:.4} by keyword, {hybrid:.4} hybrid");
    assert!(keyword.min(hybrid) >= MIN_WITHOUT_RESULTS, "{keyword} {hybrid}");
}

fn query_vector(embedder: &VectorCache, text: &str) -> QueryVector {
    let values = embedder.embed(&[text]).unwrap().remove(0);
    QueryVector { values, unrelated_cosine: embedder.unrelated_cosine().unwrap() }
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

    fn query_texts(&self) -> impl Iterator<Item = &str> {
        self.queries.iter().map(|(text, _)| text.as_str())
    }

    /// A knowledge base of the documents, with vectors.
    fn ingest(&self, store: Store, embedder: &Arc<VectorCache>) -> Kb {
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

    fn measure(&self, kb: &Kb, embedder: &VectorCache) -> Figures {
        let mut figures = Figures::default();
        for (text, relevant) in &self.queries {
            let vector = query_vector(embedder, text);
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

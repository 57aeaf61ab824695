//! Retrieval quality: nDCG@10 on test sets of documents, queries and relevance judgements (a directory with
//! `docs.jsonl`,
//! `queries.jsonl` and `qrels.jsonl` each).

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toolwright_capabilities::Embedder;
use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::relevance::DEFAULT_MIN_SCORE;
use toolwright_kb::search::{self, Hit, Query, QueryVector};
use toolwright_kb::store::{CandidateQuery, Filter};
use toolwright_kb::{EmbedderSource, Kb};

use crate::{Location, Result};

#[derive(Deserialize)]
struct Text {
    id: String,
    text: String,
}

#[derive(Deserialize)]
struct Judgement {
    query: String,
    doc: String,
    rel: f64,
}

/// The nDCG@10 that hybrid search must reach, from measurements with other programs.
const REQUIRED: [(&str, f64); 3] = [("cisi", 0.447), ("cranfield", 0.561), ("scifact", 0.735)];
const TOLERANCE: f64 = 0.005;

/// The compared search methods.
const METHODS: [&str; 3] = ["keyword", "vector", "hybrid"];

pub fn run(corpora: &Path, location: &Location) -> Result<()> {
    let embedder = embedder();
    let mut missed = Vec::new();
    println!("\n{:<12} {:>8} {:>8} {:>8} {:>8}", "nDCG@10", "queries", METHODS[0], METHODS[1], METHODS[2]);
    let mut sets: Vec<_> = fs::read_dir(corpora.join("kb"))?.flatten().map(|entry| entry.path()).collect();
    sets.sort();
    for set in sets.iter().filter(|set| set.is_dir()) {
        let dir = tempfile::tempdir()?;
        let shared = embedder.clone();
        let source: EmbedderSource = Arc::new(move || shared.clone().ok_or_else(|| "no embedder".to_owned()));
        let kb = Kb::new(location.open(dir.path())?, source);
        let titled = dir.path().join("docs.jsonl");
        fs::write(&titled, with_titles(&fs::read_to_string(set.join("docs.jsonl"))?)?)?;
        let report = kb.add(dir.path(), &[titled], &Defaults::default(), &Progress::default())?;
        assert!(report.problems.is_empty(), "{:?}", report.problems.first());
        kb.embed(&Progress::default())?;
        let (judged, totals) = query_all(&kb, set, embedder.as_deref())?;
        let name = set.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let reached = totals.map(|total| total / judged as f64);
        println!("{name:<12} {judged:>8} {}", reached.map(|value| format!("{value:>8.3}")).join(" "));
        let [keyword, vector, hybrid] = reached;
        let required = REQUIRED.iter().find(|(set, _)| *set == name).map_or(0.0, |(_, required)| *required);
        if embedder.is_some() && hybrid < required.max(keyword).max(vector) - TOLERANCE {
            missed.push(format!("{name}: {hybrid:.4} is below {:.3}", required.max(keyword).max(vector)));
        }
    }
    if missed.is_empty() { Ok(()) } else { Err(missed.join("; ").into()) }
}

/// The model in `TOOLWRIGHT_MODELS`, if it is installed there.
fn embedder() -> Option<Arc<dyn Embedder>> {
    let models = std::env::var_os("TOOLWRIGHT_MODELS")?.into();
    match toolwright_embed::open(&toolwright_embed::Settings { models, endpoint: None }) {
        Ok(embedder) => Some(embedder),
        Err(error) => {
            println!("measuring keyword search only: {error}");
            None
        }
    }
}

/// The number of queries with judgements, and the sum of nDCG@10 of each method.
fn query_all(kb: &Kb, set: &Path, embedder: Option<&dyn Embedder>) -> Result<(usize, [f64; 3])> {
    let judgements = judgements(set)?;
    let mut judged = 0;
    let mut totals = [0.0; 3];
    for query in lines::<Text>(&set.join("queries.jsonl"))? {
        let Some(relevant) = judgements.get(&query.id) else { continue };
        let filter = Filter::default();
        let search_query = Query {
            text: query.text.clone(),
            filter: filter.clone(),
            top_k: 10,
            min_score: DEFAULT_MIN_SCORE,
            deadline: None,
        };
        let ids = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.record.id).collect::<Vec<_>>();
        totals[0] += ndcg(&ids(search::search(&*kb.store, &search_query, None)?), relevant);
        if let Some(embedder) = embedder {
            let values = embedder.embed(&[&query.text])?.pop().unwrap_or_default();
            let vector = QueryVector { values, unrelated_cosine: embedder.unrelated_cosine().unwrap_or(0.0) };
            let vector_only = CandidateQuery {
                text: "",
                vector: Some(&vector.values),
                filter: &filter,
                limit: 10,
                deadline: None,
            };
            let mut found = Vec::new();
            for hit in kb.store.find_candidates(&vector_only)?.vector {
                found.extend(kb.store.fetch(&[hit.key])?.into_iter().map(|record| record.id));
            }
            totals[1] += ndcg(&found, relevant);
            totals[2] += ndcg(&ids(search::search(&*kb.store, &search_query, Some(&vector))?), relevant);
        }
        judged += 1;
    }
    Ok((judged, totals))
}

/// Sets missing titles to the id, because a record needs a title.
fn with_titles(text: &str) -> Result<String> {
    let mut lines = String::new();
    for line in text.lines() {
        let mut record: serde_json::Value = serde_json::from_str(line)?;
        if record["title"].as_str().unwrap_or_default().trim().is_empty() {
            record["title"] = record["id"].clone();
        }
        lines.push_str(&record.to_string());
        lines.push('\n');
    }
    Ok(lines)
}

fn judgements(set: &Path) -> Result<HashMap<String, HashMap<String, f64>>> {
    let mut by_query: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for Judgement { query, doc, rel } in lines::<Judgement>(&set.join("qrels.jsonl"))? {
        by_query.entry(query).or_default().insert(doc, rel);
    }
    Ok(by_query)
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>> {
    fs::read_to_string(path)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

fn ndcg(ids: &[String], relevant: &HashMap<String, f64>) -> f64 {
    let gain = |(at, rel): (usize, f64)| rel / (at as f64 + 2.0).log2();
    let found =
        ids.iter().map(|id| relevant.get(id.trim_start_matches("doc:")).copied().unwrap_or(0.0)).take(10);
    let mut best: Vec<f64> = relevant.values().copied().collect();
    best.sort_by(|left, right| right.total_cmp(left));
    let ideal: f64 = best.into_iter().take(10).enumerate().map(gain).sum();
    if ideal > 0.0 { found.enumerate().map(gain).sum::<f64>() / ideal } else { 0.0 }
}

//! How good the answers are: nDCG@10 on sets of documents, queries and judgements (`docs.jsonl`, `queries.jsonl`,
//! `qrels.jsonl` in a folder each).

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::search::{self, Query};
use toolwright_kb::store::Filter;
use toolwright_kb::{Embedders, Kb};

use crate::{Place, Result};

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

pub fn run(corpora: &Path, place: &Place) -> Result<()> {
    println!("\n{:<12} {:>8} {:>8}", "nDCG@10", "queries", "keyword");
    let mut sets: Vec<_> = fs::read_dir(corpora.join("kb"))?.flatten().map(|entry| entry.path()).collect();
    sets.sort();
    for set in sets.iter().filter(|set| set.is_dir()) {
        let dir = tempfile::tempdir()?;
        let none: Embedders = Arc::new(|| None);
        let kb = Kb::of(place.open(dir.path())?, none);
        let titled = dir.path().join("docs.jsonl");
        fs::write(&titled, with_titles(&fs::read_to_string(set.join("docs.jsonl"))?)?)?;
        let report = kb.add(dir.path(), &[titled], &Defaults::default(), &Progress::default())?;
        assert!(report.problems.is_empty(), "{:?}", report.problems.first());
        let judgements = judgements(set)?;
        let queries: Vec<Text> = lines(&set.join("queries.jsonl"))?;
        let mut total = 0.0;
        let mut judged = 0;
        for query in &queries {
            let Some(relevant) = judgements.get(&query.id) else { continue };
            let asked =
                Query { text: query.text.clone(), filter: Filter::default(), top_k: 10, deadline: None };
            let hits = search::search(&kb.store, &asked, None)?;
            let ids: Vec<&str> = hits.iter().map(|hit| hit.record.id.trim_start_matches("doc:")).collect();
            total += ndcg(&ids, relevant);
            judged += 1;
        }
        let name = set.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name:<12} {judged:>8} {:>8.3}", total / f64::from(judged));
    }
    Ok(())
}

/// A record needs a title; some of the sets' documents have none.
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

fn ndcg(ids: &[&str], relevant: &HashMap<String, f64>) -> f64 {
    let gain = |(at, rel): (usize, f64)| rel / (at as f64 + 2.0).log2();
    let found = ids.iter().map(|id| relevant.get(*id).copied().unwrap_or(0.0)).take(10);
    let mut best: Vec<f64> = relevant.values().copied().collect();
    best.sort_by(|left, right| right.total_cmp(left));
    let ideal: f64 = best.into_iter().take(10).enumerate().map(gain).sum();
    if ideal > 0.0 { found.enumerate().map(gain).sum::<f64>() / ideal } else { 0.0 }
}

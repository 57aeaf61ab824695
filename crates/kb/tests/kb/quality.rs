//! How good answers by words are on public test sets, when `TOOLWRIGHT_CORPORA` names their folder: nDCG@10 is not below
//! what plain BM25 with stems was measured at.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolwright_kb::Kb;
use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::search::{Query, search};
use toolwright_kb::store::Filter;

#[test]
fn answers_by_words_are_as_good_as_bm25_was_measured() {
    let Some(folder) = std::env::var_os("TOOLWRIGHT_CORPORA") else {
        eprintln!("TOOLWRIGHT_CORPORA is not set: the quality of answers is not measured");
        return;
    };
    for (set, bar) in [("cranfield", 0.508), ("cisi", 0.369), ("scifact", 0.684)] {
        let reached = by_words(&Path::new(&folder).join("kb").join(set));
        eprintln!("{set}: {reached:.3} (at least {bar})");
        assert!(reached >= bar, "{set}: {reached:.4}");
    }
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn by_words(set: &Path) -> f64 {
    let dir = tempfile::tempdir().unwrap();
    let kb = Kb::open(
        &format!("dir:{}", dir.path().join("kb").display()),
        Arc::new(|| Err("there is none".to_owned())),
    )
    .unwrap();
    let mut lines = String::new();
    for mut document in rows(&set.join("docs.jsonl")) {
        if document["title"].as_str().unwrap_or_default().trim().is_empty() {
            document["title"] = document["id"].clone();
        }
        lines.push_str(&format!("{document}\n"));
    }
    let path = dir.path().join("docs.jsonl");
    std::fs::write(&path, lines).unwrap();
    let report = kb.add(dir.path(), &[path], &Defaults::default(), &Progress::default()).unwrap();
    assert_eq!(report.problems, []);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut judged: HashMap<String, HashMap<String, f64>> = HashMap::new();
    for row in rows(&set.join("qrels.jsonl")) {
        judged
            .entry(text(&row["query"]))
            .or_default()
            .insert(text(&row["doc"]), row["rel"].as_f64().unwrap());
    }
    let mut all = Vec::new();
    for row in rows(&set.join("queries.jsonl")) {
        let Some(relevant) = judged.get(&text(&row["id"])) else { continue };
        let query = Query { text: text(&row["text"]), filter: Filter::default(), top_k: 10, deadline: None };
        let hits = search(&kb.store, &query, None).unwrap();
        let gains = hits.iter().map(|hit| relevant.get(&hit.record.id[4..]).copied().unwrap_or(0.0));
        let mut best: Vec<f64> = relevant.values().copied().collect();
        best.sort_by(|left, right| right.total_cmp(left));
        all.push(discounted(gains) / discounted(best.into_iter().take(10)));
    }
    all.iter().sum::<f64>() / all.len() as f64
}

fn discounted(gains: impl Iterator<Item = f64>) -> f64 {
    gains.enumerate().map(|(at, gain)| gain / (at as f64 + 2.0).log2()).sum()
}

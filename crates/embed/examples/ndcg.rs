//! Proves the embedder: embeds a test set (`docs.jsonl`, `queries.jsonl`, `qrels.jsonl` in DIR), ranks by vectors alone and
//! prints nDCG@10. Vectors are kept below `target/vectors/` for the next run.
//!
//! `cargo run --release -p toolwright-embed --example ndcg -- DIR…`, the model from `TOOLWRIGHT_MODELS` or `target/models`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolwright_capabilities::Embedder;
use toolwright_embed::{Settings, open};

/// Texts that are embedded between two looks at the clock.
const STEP: usize = 256;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let models =
        std::env::var_os("TOOLWRIGHT_MODELS").map_or_else(|| root.join("target/models"), PathBuf::from);
    let embedder = open(&Settings { models, endpoint: None }).unwrap();
    for dir in std::env::args().skip(1).map(PathBuf::from) {
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let (documents, queries) = (lines(&dir, "docs"), lines(&dir, "queries"));
        let cache = root.join("target/vectors");
        fs::create_dir_all(&cache).unwrap();
        let of_documents = vectors(&*embedder, &documents, &cache.join(format!("{name}.f32")));
        let of_queries = vectors(&*embedder, &queries, &cache.join(format!("{name}.queries.f32")));
        let mut relevant: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for line in lines(&dir, "qrels") {
            let gain = line["rel"].as_f64().unwrap();
            relevant.entry(text(&line, "query")).or_default().insert(text(&line, "doc"), gain);
        }
        let ids: Vec<String> = documents.iter().map(|line| text(line, "id")).collect();
        let scores = queries.iter().zip(&of_queries).filter_map(|(query, vector)| {
            let gains = relevant.get(&text(query, "id"))?;
            gains.values().any(|gain| *gain > 0.0).then(|| ndcg(&ranked(vector, &of_documents, &ids), gains))
        });
        let scores: Vec<f64> = scores.collect();
        println!(
            "{name}: nDCG@10 {:.4} over {} queries",
            scores.iter().sum::<f64>() / scores.len() as f64,
            scores.len()
        );
    }
}

fn lines(dir: &Path, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(dir.join(format!("{name}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

fn vectors(embedder: &dyn Embedder, lines: &[Value], cache: &Path) -> Vec<Vec<f32>> {
    let width = embedder.dimensions();
    if let Ok(bytes) = fs::read(cache)
        && bytes.len() == 4 * width * lines.len()
    {
        let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
        return numbers.chunks(width).map(<[f32]>::to_vec).collect();
    }
    let texts: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {}", text(line, "title"), text(line, "text")).trim().to_owned())
        .collect();
    let start = std::time::Instant::now();
    let mut all = Vec::with_capacity(texts.len());
    for texts in texts.chunks(STEP) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        all.extend(embedder.embed(&texts).unwrap());
    }
    println!("  {} texts in {:.1} s", all.len(), start.elapsed().as_secs_f64());
    fs::write(cache, all.iter().flatten().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
        .unwrap();
    all
}

fn ranked<'a>(query: &[f32], documents: &[Vec<f32>], ids: &'a [String]) -> Vec<&'a str> {
    let score = |vector: &Vec<f32>| query.iter().zip(vector).map(|(a, b)| a * b).sum::<f32>();
    let mut scored: Vec<(f32, &str)> =
        documents.iter().map(score).zip(ids.iter().map(String::as_str)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(10).map(|(_, id)| id).collect()
}

fn ndcg(found: &[&str], gains: &HashMap<String, f64>) -> f64 {
    let discounted =
        |gains: &[f64]| gains.iter().zip(2..).map(|(gain, rank)| gain / f64::from(rank).log2()).sum::<f64>();
    let mut ideal: Vec<f64> = gains.values().copied().filter(|gain| *gain > 0.0).collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    ideal.truncate(10);
    let got: Vec<f64> = found.iter().map(|id| gains.get(*id).copied().unwrap_or(0.0)).collect();
    discounted(&got) / discounted(&ideal)
}

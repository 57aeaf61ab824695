//! Ingest, latency, recall and memory at one size.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::search::{self, Query, QueryVector};
use toolwright_kb::store::{Backend, CandidateQuery, EmbedderId, Filter};
use toolwright_kb::{Kb, passages};

use crate::{Location, Result, synthetic};

pub const HEADER: &str = "   records  ingest/s  search p50   p99 ms  1 % filter p50   p99 ms  keyword p50    p99 ms  recall@10  1 %  opening ms  memory MB (files)";
const QUERIES: u64 = 300;
const RECALL_QUERIES: u64 = 40;

pub fn run(size: u64, location: &Location) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let kb = Kb::new(location.open(dir.path())?, Arc::new(|| Err("no embedder".to_owned())));
    let per_second = ingest(&kb, dir.path(), size)?;
    put_vectors(&*kb.store, size)?;
    drop(kb);
    let started = Instant::now();
    let opened = location.open(dir.path())?;
    let store = &*opened;
    timed_search(store, 0, &Filter::default(), true)?;
    let opening = started.elapsed();
    let rare = Filter { tags: vec![synthetic::RARE_TAG.to_owned()], ..Filter::default() };
    let all = Filter::default();
    let plain = latencies(store, &all, true)?;
    let filtered = latencies(store, &rare, true)?;
    let words = latencies(store, &all, false)?;
    let (recall, filtered_recall) = (recall(store, size, &all)?, self::recall(store, size, &rare)?);
    let (anonymous, files) = memory();
    println!(
        "{size:>10} {per_second:>9.0} {:>11.2} {:>8.2} {:>15.2} {:>8.2} {:>13.2} {:>8.2} {recall:>10.3} {filtered_recall:>4.2} {:>11.0} {anonymous:>10} ({files})",
        plain.0,
        plain.1,
        filtered.0,
        filtered.1,
        words.0,
        words.1,
        opening.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn ingest(kb: &Kb, dir: &std::path::Path, size: u64) -> Result<f64> {
    let path = dir.join("records.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
    for number in 0..size {
        serde_json::to_writer(&mut file, &synthetic::record(number))?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    let started = Instant::now();
    let report = kb.add(dir, &[path], &Defaults::default(), &Progress::default())?;
    assert_eq!((report.put as u64, report.problems.len()), (size, 0));
    Ok(size as f64 / started.elapsed().as_secs_f64())
}

fn put_vectors(store: &dyn Backend, size: u64) -> Result<()> {
    let embedder = EmbedderId { name: "synthetic".to_owned(), dimensions: synthetic::DIMENSIONS };
    let numbers: Vec<u64> = (0..size).collect();
    let mut writer = store.begin_write()?;
    for batch in numbers.chunks(50_000) {
        let keyed = |number: &u64| {
            (passages::split_record(&synthetic::record(*number))[0].key, synthetic::vector(*number))
        };
        writer.put_vectors(&embedder, &batch.iter().map(keyed).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn timed_search(store: &dyn Backend, number: u64, filter: &Filter, with_vector: bool) -> Result<Duration> {
    let vector = QueryVector { values: synthetic::vector(number + (1 << 40)), unrelated_cosine: 0.0 };
    let query = Query {
        text: synthetic::query(number),
        filter: filter.clone(),
        top_k: 5,
        min_score: 0.0,
        deadline: None,
    };
    let started = Instant::now();
    search::search(store, &query, with_vector.then_some(&vector))?;
    Ok(started.elapsed())
}

/// The median and the 99th percentile in milliseconds.
fn latencies(store: &dyn Backend, filter: &Filter, with_vector: bool) -> Result<(f64, f64)> {
    let mut times = Vec::new();
    for number in 0..QUERIES {
        times.push(timed_search(store, number, filter, with_vector)?.as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[times.len() * 99 / 100]))
}

/// recall@10 of vector search.
fn recall(store: &dyn Backend, size: u64, filter: &Filter) -> Result<f64> {
    let queries: Vec<Vec<f32>> =
        (0..RECALL_QUERIES).map(|number| synthetic::vector(number + (1 << 40))).collect();
    let mut nearest: Vec<Vec<(f32, u64)>> = vec![Vec::new(); queries.len()];
    let is_rare = !filter.tags.is_empty();
    for number in (0..size).filter(|number| !is_rare || number % synthetic::RARE_TAG_INTERVAL == 7) {
        let vector = synthetic::vector(number);
        for (query, nearest) in queries.iter().zip(&mut nearest) {
            let cosine: f32 = query.iter().zip(&vector).map(|(left, right)| left * right).sum();
            if nearest.len() < 10 || nearest.last().is_some_and(|last| cosine > last.0) {
                nearest.push((cosine, number));
                nearest.sort_by(|left, right| right.0.total_cmp(&left.0));
                nearest.truncate(10);
            }
        }
    }
    let mut found = 0;
    for (query, nearest) in queries.iter().zip(&nearest) {
        let search = CandidateQuery { text: "", vector: Some(query), filter, limit: 100, deadline: None };
        let hits = store.find_candidates(&search)?.vector;
        let keys: Vec<_> = nearest.iter().map(|(_, number)| synthetic::record(*number).key()).collect();
        found += hits.iter().take(10).filter(|hit| keys.contains(&hit.key)).count();
    }
    Ok(found as f64 / (queries.len() * 10) as f64)
}

/// The anonymous and file-backed memory of the process in megabytes.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    (field("RssAnon:"), field("RssFile:"))
}

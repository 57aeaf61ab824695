//! JSONL: a record a line.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::raw::Raw;
use super::{Defaults, Parsed, Trouble};

/// The records, read as they are asked for: a file may hold a million. The bytes that were read are counted.
pub fn records<'a>(
    text: &'a str,
    source: &'a str,
    defaults: &'a Defaults,
    done: &'a AtomicUsize,
) -> impl Iterator<Item = Parsed> + 'a {
    let lines = text.lines().enumerate().inspect(move |(_, line)| {
        done.fetch_add(line.len() + 1, Ordering::Relaxed);
    });
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines.map(move |(at, line)| {
        let raw: Result<Raw, _> = serde_json::from_str(line);
        raw.map_err(|error| {
            format!("is not a record: {} (further fields belong into `metadata`)", without_line(&error))
        })
        .and_then(|raw| raw.record(source, "jsonl", defaults))
        .map(|record| (at + 1, record))
        .map_err(|message| Trouble { line: Some(at + 1), message })
    })
}

/// The parser counts lines from the one it was given.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((message, column)) => format!("{message}, at column {column}"),
        None => text,
    }
}

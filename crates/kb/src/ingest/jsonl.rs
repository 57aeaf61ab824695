//! JSONL: one record per line.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::record_input::RecordInput;
use super::{Defaults, ParseError, ParseResult};

/// The records, parsed lazily because a file may hold a million. Adds the bytes of each line to `done`.
pub fn parse<'a>(
    text: &'a str,
    source: &'a str,
    defaults: &'a Defaults,
    done: &'a AtomicUsize,
) -> impl Iterator<Item = ParseResult> + 'a {
    let lines = text.lines().zip(1..).inspect(move |(line, _)| {
        done.fetch_add(line.len() + 1, Ordering::Relaxed);
    });
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    lines.map(move |(line, number)| {
        serde_json::from_str::<RecordInput>(line)
            .map_err(|error| {
                format!("not a record: {} (put other fields into `metadata`)", without_line(&error))
            })
            .and_then(|input| input.into_record(source, "jsonl", defaults))
            .map(|record| (number, record))
            .map_err(|message| ParseError { line: Some(number), message })
    })
}

/// The parser always reports line 1, because it gets one line.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((message, column)) => format!("{message}, at column {column}"),
        None => text,
    }
}

//! JSONL: a record a line.

use super::raw::Raw;
use super::{Defaults, Found};

/// All sound records with their lines; what is wrong with the others is told.
pub fn records(
    text: &str,
    source: &str,
    defaults: &Defaults,
    told: &mut dyn FnMut(Option<usize>, String),
) -> Vec<Found> {
    let mut records = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = at + 1;
        let raw: Result<Raw, _> = serde_json::from_str(line);
        let record = raw
            .map_err(|error| {
                format!("is not a record: {} (further fields belong into `metadata`)", without_line(&error))
            })
            .and_then(|raw| raw.record(source, "jsonl", defaults));
        match record {
            Ok(record) => records.push((line_number, record)),
            Err(message) => told(Some(line_number), message),
        }
    }
    records
}

/// The parser counts lines from the one it was given.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((message, column)) => format!("{message}, at column {column}"),
        None => text,
    }
}

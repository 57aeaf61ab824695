//! Splits a record's text into passages: an embedding model reads only a few hundred words at a time.

use crate::record::{Record, digest64};

/// About 230 English words, which is the input limit of a small sentence transformer.
const MAX_PASSAGE_BYTES: usize = 1100;
/// A passage is not cut at a paragraph or sentence before this position.
const MIN_PASSAGE_BYTES: usize = MAX_PASSAGE_BYTES / 3;

/// A part of a record's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The digest of `text`. Passages with the same key share a vector, even across records.
    pub key: u64,
    /// The text to embed: the record's title and the part.
    pub text: String,
    /// The byte offset of the part in the record's text.
    pub start: usize,
}

/// The passages of a record, in order; at least one. They depend only on its title and text.
pub fn split_record(record: &Record) -> Vec<Passage> {
    let passage = |(start, part): (usize, &str)| {
        let text = if part.is_empty() { record.title.clone() } else { format!("{}\n{part}", record.title) };
        Passage { key: digest64([text.as_bytes()]), text, start }
    };
    split_text(&record.text).into_iter().map(passage).collect()
}

/// Splits at paragraphs, or else at sentences, or else at words.
fn split_text(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    loop {
        start += text[start..].len() - text[start..].trim_start().len();
        let rest = &text[start..];
        if rest.len() <= MAX_PASSAGE_BYTES {
            if !rest.is_empty() || parts.is_empty() {
                parts.push((start, rest.trim_end()));
            }
            return parts;
        }
        let end = start + first_break(rest);
        parts.push((start, text[start..end].trim_end()));
        start = end;
    }
}

/// Where the first passage of a text that is too long ends.
fn first_break(text: &str) -> usize {
    let window = &text[..text.floor_char_boundary(MAX_PASSAGE_BYTES)];
    let after = |pattern: &str| {
        window.rfind(pattern).map(|at| at + pattern.len()).filter(|end| *end > MIN_PASSAGE_BYTES)
    };
    after("\n\n")
        .or_else(|| [". ", ".\n", "! ", "? "].iter().filter_map(|end| after(end)).max())
        .or_else(|| window.rfind(char::is_whitespace).filter(|at| *at > 0))
        .unwrap_or(window.len())
}

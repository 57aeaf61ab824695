//! The parts of a record that get vectors: a sentence transformer reads a few hundred words at a time.

use crate::record::{Record, digest64};

/// About 230 English words, which is as much as a small sentence transformer reads.
const MOST: usize = 1100;

/// A part of a record's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Of what the vector is made from: two passages with one key have one vector, in whichever records they are.
    pub key: u64,
    /// What the vector is made from: the record's title and the part.
    pub text: String,
    /// Where the part begins in the record's text, in bytes.
    pub start: usize,
}

/// A record's passages in order; at least one. They depend on title and text alone.
pub fn of(record: &Record) -> Vec<Passage> {
    let mut passages = Vec::new();
    for (start, part) in parts(&record.text) {
        let text = if part.is_empty() { record.title.clone() } else { format!("{}\n{part}", record.title) };
        passages.push(Passage { key: digest64([text.as_bytes()]), text, start });
    }
    passages
}

/// Whole paragraphs where they fit, whole sentences where they do not, words at the worst.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    loop {
        start += text[start..].len() - text[start..].trim_start().len();
        let rest = &text[start..];
        if rest.len() <= MOST {
            if !rest.is_empty() || parts.is_empty() {
                parts.push((start, rest.trim_end()));
            }
            return parts;
        }
        let end = start + cut(rest);
        parts.push((start, text[start..end].trim_end()));
        start = end;
    }
}

/// Where the first part of a text that is too long ends.
fn cut(text: &str) -> usize {
    let window = &text[..text.floor_char_boundary(MOST)];
    // A part that ends early leaves less context in it than the next one gains.
    let least = MOST / 3;
    let after = |pattern: &str| window.rfind(pattern).map(|at| at + pattern.len()).filter(|end| *end > least);
    after("\n\n")
        .or_else(|| [". ", ".\n", "! ", "? "].iter().filter_map(|end| after(end)).max())
        .or_else(|| window.rfind(char::is_whitespace).filter(|at| *at > 0))
        .unwrap_or(window.len())
}

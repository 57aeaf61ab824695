//! `doc_summary.md`: part of every prompt, so its size is bounded.

use std::ops::Range;

use crate::diagnostic::{DiagnosticDraft, Location};

const FILE: &str = "doc_summary.md";
const MAX_CHARACTERS: usize = 250;
const MAX_LINES: usize = 4;

/// Checks the size of a summary.
pub fn check_summary(text: &str) -> Vec<DiagnosticDraft> {
    let error = |code, span: Range<usize>, message: String| {
        DiagnosticDraft::error(code, FILE, Location::Span(span), message)
    };
    let blank = |c: char| c.is_whitespace() || c == '\u{FEFF}';
    let start = text.len() - text.trim_start_matches(blank).len();
    let end = text.trim_end_matches(blank).len();
    if start >= end {
        let help =
            format!("say in at most {MAX_CHARACTERS} characters what the tool does and when to use it");
        return vec![error("summary-empty", 0..text.len(), format!("`{FILE}` is empty")).with_help(help)];
    }
    let summary = &text[start..end];
    let mut diagnostics = Vec::new();
    if let Some((excess, _)) = summary.char_indices().nth(MAX_CHARACTERS) {
        let count = summary.chars().count();
        let message = format!("`{FILE}` has {count} characters, at most {MAX_CHARACTERS} are allowed");
        let help = format!("shorten it by {}; details belong in doc.md", count - MAX_CHARACTERS);
        diagnostics.push(error("summary-too-long", start + excess..end, message).with_help(help));
    }
    let lines = summary.lines().count();
    if lines > MAX_LINES {
        let fifth = summary.match_indices('\n').nth(MAX_LINES - 1).map_or(0, |(at, _)| at + 1);
        let message = format!("`{FILE}` has {lines} lines; at most {MAX_LINES} read well in a prompt");
        diagnostics
            .push_mut(error("summary-too-many-lines", start + fifth..end, message))
            .help("shorten it; details belong in doc.md")
            .warning();
    }
    diagnostics
}

//! `doc_summary.md`: it goes into every prompt, so its size is bounded.

use crate::problem::Problem;

const MOST_CHARACTERS: usize = 250;
const MOST_LINES: usize = 4;

pub fn check_summary(text: &str) -> Vec<Problem> {
    let blank = |c: char| c.is_whitespace() || c == '\u{FEFF}';
    let start = text.len() - text.trim_start_matches(blank).len();
    let end = text.trim_end_matches(blank).len();
    if start >= end {
        return vec![Problem::error("summary-empty", 0..text.len(), "the summary is empty").with_help(
            format!("say in at most {MOST_CHARACTERS} characters what the tool does and when to use it"),
        )];
    }
    let summary = &text[start..end];
    let mut problems = Vec::new();
    if let Some((excess, _)) = summary.char_indices().nth(MOST_CHARACTERS) {
        let count = summary.chars().count();
        let message = format!("the summary has {count} characters; at most {MOST_CHARACTERS} are allowed");
        problems.push(
            Problem::error("summary-too-long", start + excess..end, message)
                .with_help(format!("shorten it by {}; details belong in doc.md", count - MOST_CHARACTERS)),
        );
    }
    let lines = summary.lines().count();
    if lines > MOST_LINES {
        let fifth = summary.match_indices('\n').nth(MOST_LINES - 1).map_or(0, |(at, _)| at + 1);
        let message = format!("the summary has {lines} lines; {MOST_LINES} or fewer read better in a prompt");
        problems.push(Problem::warning("summary-too-many-lines", start + fifth..end, message));
    }
    problems
}

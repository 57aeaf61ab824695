//! Text of the templates of `toolwright new` that the author has not replaced. It must not reach a prompt.

use crate::diagnostic::{DiagnosticDraft, Location};

/// The beginning of every text that an author has to replace.
const MARKER: &str = "TODO(author)";

/// Reports a file with text of the template, once.
pub(super) fn check(file: &'static str, text: &str) -> Option<DiagnosticDraft> {
    let first = text.find(MARKER)?;
    let line = text[first..].lines().next().unwrap_or(MARKER);
    let message = match text.matches(MARKER).count() {
        1 => format!("`{file}` is unfinished: it has text of the template"),
        count => format!("`{file}` is unfinished: it has text of the template in {count} places"),
    };
    let location = Location::Span(first..first + line.len());
    let draft = DiagnosticDraft::error("tool-unfinished", file, location, message);
    Some(draft.with_help(format!("write your own text in place of each `{MARKER}`")))
}

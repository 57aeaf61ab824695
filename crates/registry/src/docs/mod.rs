//! The two Markdown files of a tool: the size of the summary, and the sections and examples of the documentation.
//! Whether an example matches the schema is checked elsewhere.

mod examples;
mod outline;
mod sections;
mod summary;

pub use examples::{Example, ExampleKind};
pub use summary::check_summary;

use crate::diagnostic::{DiagnosticDraft, Location};

pub(crate) const DOC_FILE: &str = "doc.md";

/// The result of checking `doc.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocReport {
    pub diagnostics: Vec<DiagnosticDraft>,
    pub examples: Vec<Example>,
}

pub fn check_doc(text: &str) -> DocReport {
    let outline = outline::read(text);
    let mut diagnostics = sections::check(&outline);
    for span in outline.unclosed_fences {
        let message =
            format!("a code fence of `{DOC_FILE}` is never closed, so the rest of the file is code");
        diagnostics
            .push_mut(DiagnosticDraft::error("doc-unclosed-fence", DOC_FILE, Location::Span(span), message))
            .help("close it with a line of the same fence characters")
            .warning();
    }
    DocReport { diagnostics, examples: outline.examples }
}

#[cfg(test)]
#[path = "docs_tests.rs"]
#[rustfmt::skip] // tables
mod tests;

//! Diagnostics, shown to people (with the offending text underlined) or to programs (JSON).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::Serialize;
use toolwright_registry::diagnostic::{Diagnostic, Severity};

use crate::output;

/// What `build` and `check` print for programs. Documented in docs/reference/diagnostics.md; stable.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<&'a str>,
    pub tools: usize,
    pub diagnostics: Vec<Entry<'a>>,
}

#[derive(Debug, Serialize)]
pub struct Entry<'a> {
    severity: Severity,
    code: &'a str,
    tool: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

impl<'a> From<&'a Diagnostic> for Entry<'a> {
    fn from(found: &'a Diagnostic) -> Self {
        Self {
            severity: found.severity,
            code: &found.code,
            tool: &found.tool,
            file: &found.file,
            line: found.line,
            column: found.column,
            message: &found.message,
            help: found.help.as_deref(),
        }
    }
}

/// Of more warnings than this nobody reads the rest, and it would bury the errors.
const MOST_WARNINGS: usize = 25;

/// Shows the diagnostics on stderr, each with its source: all errors, and the first warnings.
pub fn show(root: &Path, diagnostics: &[Diagnostic]) {
    let mut sources = Sources::default();
    let mut warnings = 0;
    for found in diagnostics {
        warnings += usize::from(found.severity == Severity::Warning);
        if found.severity == Severity::Error || warnings <= MOST_WARNINGS {
            output::message(format_args!("{}\n", render(root, found, &mut sources)));
        }
    }
    if warnings > MOST_WARNINGS {
        let more = plural(warnings - MOST_WARNINGS, "more warning");
        output::message(format_args!("… and {more}; `--format json` lists them all\n"));
    }
}

/// Texts of the files that diagnostics point into; a file has often more than one.
#[derive(Debug, Default)]
struct Sources(HashMap<PathBuf, Option<String>>);

impl Sources {
    fn get(&mut self, path: &Path) -> Option<&str> {
        let text = self.0.entry(path.to_owned()).or_insert_with(|| std::fs::read_to_string(path).ok());
        text.as_deref()
    }
}

fn render(root: &Path, found: &Diagnostic, sources: &mut Sources) -> String {
    let path = place(root, found);
    let shown_path = path.display().to_string();
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(found.message.as_str()).id(found.code.as_ref());
    // The file may have changed since; a span that no longer fits is not shown.
    let source = found.span.clone().and_then(|span| {
        let text = sources.get(&path)?;
        (text.is_char_boundary(span.start) && text.is_char_boundary(span.end) && span.end <= text.len())
            .then_some((text, span))
    });
    let mut group = match source {
        Some((text, span)) => title.element(
            Snippet::source(text)
                .path(shown_path)
                .annotation(AnnotationKind::Primary.span(first_line(text, span))),
        ),
        None => title.element(annotate_snippets::Origin::path(shown_path)),
    };
    if let Some(help) = &found.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::styled().render(&[group])
}

/// Underlining a whole object says less than underlining where it begins.
fn first_line(text: &str, span: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let end = text[span.clone()].find('\n').map_or(span.end, |newline| span.start + newline);
    span.start..end
}

fn place(root: &Path, found: &Diagnostic) -> PathBuf {
    match (found.tool.as_str(), found.file.strip_prefix("../")) {
        ("", _) => root.to_owned(),
        (_, Some(shared)) => root.join(shared),
        (tool, None) if found.file.is_empty() => root.join(tool),
        (tool, None) => root.join(tool).join(&found.file),
    }
}

/// `1 error, 2 warnings`, or nothing.
pub fn count(diagnostics: &[Diagnostic]) -> String {
    let of = |severity| diagnostics.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(plural(errors, "error"));
    }
    if warnings > 0 {
        parts.push(plural(warnings, "warning"));
    }
    parts.join(", ")
}

/// `1 tool`, `2 tools`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

//! Prints diagnostics: for people with the source underlined, for programs as JSON.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde_json::{Value, json};
use toolwright_registry::diagnostic::{Diagnostic, Severity};

use crate::output;

/// A diagnostic without its span, which is for people.
fn to_json(found: &Diagnostic) -> Value {
    let Diagnostic { severity, code, tool, file, line, column, message, help, span: _ } = found;
    let mut row = json!({ "severity": severity, "code": code, "tool": tool, "file": file, "line": line,
        "column": column, "message": message });
    if let Some(help) = help {
        row["help"] = json!(help);
    }
    row
}

/// The JSON output of `build` and `check`: stable, documented in docs/reference/diagnostics.md.
pub fn print_json(ok: bool, version: Option<&str>, tools: usize, diagnostics: &[Diagnostic]) {
    let mut report = json!({ "ok": ok });
    if let Some(version) = version {
        report["version"] = version.into();
    }
    report["tools"] = tools.into();
    report["diagnostics"] = diagnostics.iter().map(to_json).collect();
    output::print_line(report);
}

/// More warnings would hide the errors.
const MAX_WARNINGS: usize = 25;

/// Prints diagnostics to stderr, each with its source: all errors, and the first warnings.
pub fn print_diagnostics(root: &Path, diagnostics: &[Diagnostic]) {
    let mut sources = Sources::default();
    let mut warnings = 0;
    for found in diagnostics {
        warnings += usize::from(found.severity == Severity::Warning);
        if found.severity == Severity::Error || warnings <= MAX_WARNINGS {
            output::message(format_args!("{}\n", render(root, found, &mut sources)));
        }
    }
    if warnings > MAX_WARNINGS {
        let more = plural(warnings - MAX_WARNINGS, "more warning");
        output::message(format_args!("… and {more}; `--format json` lists them all\n"));
    }
}

/// The texts of files with diagnostics, each read once.
#[derive(Debug, Default)]
struct Sources(HashMap<PathBuf, Option<String>>);

impl Sources {
    fn get(&mut self, path: &Path) -> Option<&str> {
        let text = self.0.entry(path.to_owned()).or_insert_with(|| std::fs::read_to_string(path).ok());
        text.as_deref()
    }
}

fn render(root: &Path, found: &Diagnostic, sources: &mut Sources) -> String {
    let path = path_of(root, found);
    let displayed_path = path.display().to_string();
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(found.message.as_str()).id(found.code.as_ref());
    // The file may have changed since the check: ignore a span that no longer fits.
    let source = found.span.clone().and_then(|span| {
        let text = sources.get(&path)?;
        (text.is_char_boundary(span.start) && text.is_char_boundary(span.end) && span.end <= text.len())
            .then_some((text, span))
    });
    let mut group = match source {
        Some((text, span)) => title.element(
            Snippet::source(text)
                .path(displayed_path)
                .annotation(AnnotationKind::Primary.span(first_line(text, span))),
        ),
        None => title.element(annotate_snippets::Origin::path(displayed_path)),
    };
    if let Some(help) = &found.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    Renderer::styled().render(&[group])
}

/// The part of a span on its first line: underlining a whole object would hide where it begins.
fn first_line(text: &str, span: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let end = text[span.clone()].find('\n').map_or(span.end, |newline| span.start + newline);
    span.start..end
}

fn path_of(root: &Path, found: &Diagnostic) -> PathBuf {
    match (found.tool.as_str(), found.file.strip_prefix("../")) {
        ("", _) => root.to_owned(),
        (_, Some(shared)) => root.join(shared),
        (tool, None) if found.file.is_empty() => root.join(tool),
        (tool, None) => root.join(tool).join(&found.file),
    }
}

/// `1 error, 2 warnings`; empty without diagnostics.
pub fn count(diagnostics: &[Diagnostic]) -> String {
    let severities = [(Severity::Error, "error"), (Severity::Warning, "warning")];
    let counts = severities.map(|(severity, noun)| {
        (diagnostics.iter().filter(|found| found.severity == severity).count(), noun)
    });
    let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, noun)| plural(*count, noun));
    parts.collect::<Vec<_>>().join(", ")
}

/// `1 tool`, `2 tools`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `2 errors, 1 warning in 2 of 5 tools`: the problems, and the number of tools that have some.
pub fn summary(diagnostics: &[Diagnostic], found: usize) -> String {
    let affected: BTreeSet<&str> =
        diagnostics.iter().map(|found| found.tool.as_str()).filter(|tool| !tool.is_empty()).collect();
    if affected.is_empty() {
        return count(diagnostics);
    }
    let tools = if affected.len() == found {
        plural(found, "tool")
    } else {
        format!("{} of {}", affected.len(), plural(found, "tool"))
    };
    format!("{} in {tools}", count(diagnostics))
}

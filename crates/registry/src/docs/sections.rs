//! The seven sections that a tool's documentation must have.

use std::ops::Range;

use toolwright_contract::suggest::nearest;

use super::DOC_FILE;
use super::examples::ExampleKind;
use super::outline::{Heading, Outline};
use crate::diagnostic::{DiagnosticDraft, Location};
use crate::excerpt::excerpt;

const SECTIONS: [&str; 7] = [
    "Summary",
    "Preconditions",
    "Postconditions",
    "Invariants",
    "Failure Modes",
    EXAMPLES,
    "Common Mistakes",
];
const EXAMPLES: &str = "Examples";

/// Maximum number of headings that are searched for a misspelt one.
const MAX_CANDIDATES: usize = 200;

/// Reports sections that are missing, empty or repeated.
pub(super) fn check(outline: &Outline) -> Vec<DiagnosticDraft> {
    let mut diagnostics = Vec::new();
    for section in SECTIONS {
        let headings = outline.headings.iter().filter(|heading| is_section(heading, section));
        match headings.collect::<Vec<_>>().as_slice() {
            [] => diagnostics.push(missing(outline, section)),
            headings => check_present(outline, section, headings, &mut diagnostics),
        }
    }
    diagnostics
}

fn error(code: &'static str, span: &Range<usize>, message: String) -> DiagnosticDraft {
    DiagnosticDraft::error(code, DOC_FILE, Location::Span(span.clone()), message)
}

pub(super) fn holds_examples(heading: &Heading) -> bool {
    is_section(heading, EXAMPLES)
}

fn is_section(heading: &Heading, name: &str) -> bool {
    heading.level == 2 && begins_with(heading, name)
}

/// More words may follow the name in a heading.
fn begins_with(heading: &Heading, name: &str) -> bool {
    heading.text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

fn check_present(
    outline: &Outline,
    section: &str,
    headings: &[&Heading],
    diagnostics: &mut Vec<DiagnosticDraft>,
) {
    for (index, heading) in headings.iter().enumerate() {
        if index > 0 {
            let message = format!("the section `{section}` appears more than once");
            diagnostics
                .push_mut(error("doc-duplicate-section", &heading.span, message))
                .help("merge the two, or rename one of them")
                .warning();
        }
        diagnostics.extend(empty(heading, section));
    }
    let examples = |heading: &&Heading| outline.examples.get(heading.examples.clone()).unwrap_or_default();
    let mut examples = headings.iter().flat_map(examples);
    if section == EXAMPLES && !examples.any(|example| example.kind == ExampleKind::Json) {
        let message = format!("the section `{EXAMPLES}` shows no arguments");
        diagnostics
            .push_mut(error("doc-no-example", &headings[0].span, message))
            .help("add a ```json block with the arguments of a typical call")
            .warning();
    }
}

fn empty(heading: &Heading, section: &str) -> Option<DiagnosticDraft> {
    let help = "write at least one sentence; if nothing applies, say so";
    let message = || format!("the section `{section}` is empty");
    (!heading.has_content).then(|| error("doc-empty-section", &heading.span, message()).with_help(help))
}

fn missing(outline: &Outline, section: &str) -> DiagnosticDraft {
    let span = outline.headings.first().map_or(0..0, |heading| heading.span.clone());
    let message = format!("the section `{section}` is missing");
    error("doc-missing-section", &span, message).with_help(help_for(outline, section))
}

fn help_for(outline: &Outline, section: &str) -> String {
    let headings = || outline.headings.iter().take(MAX_CANDIDATES);
    if let Some(heading) = headings().find(|heading| begins_with(heading, section)) {
        let level = heading.level;
        return format!(
            "`{}` is a level-{level} heading: make it a level-2 heading, `## {section}`",
            excerpt(&heading.text)
        );
    }
    let others = headings()
        .filter(|heading| heading.level == 2 && !SECTIONS.iter().any(|known| begins_with(heading, known)));
    match nearest(section, others.map(|heading| title(&heading.text))) {
        Some(near) => format!("did you mean `## {section}` instead of `## {near}`?"),
        None => format!("add a heading `## {section}` with text below it"),
    }
}

/// The part of a heading before a bracket, colon or dash.
fn title(text: &str) -> &str {
    text.split(['(', ':', '–', '—']).next().unwrap_or(text).trim()
}

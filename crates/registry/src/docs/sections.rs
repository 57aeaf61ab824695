//! The seven sections that a tool's documentation must have, and what is wrong with those of an
//! outline.

use super::examples::ExampleKind;
use super::outline::{Heading, Outline};
use crate::problem::Problem;
use toolwright_contract::suggest::nearest;

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

/// How many headings are looked through for a misspelt one.
const MOST_CANDIDATES: usize = 200;

pub(super) fn check(outline: &Outline) -> Vec<Problem> {
    let mut problems = Vec::new();
    for section in SECTIONS {
        let mut headings = outline.headings.iter().filter(|heading| is_section(heading, section));
        match headings.next() {
            None => problems.push(missing(outline, section)),
            Some(first) => check_present(outline, section, first, headings, &mut problems),
        }
    }
    problems
}

pub(super) fn holds_examples(heading: &Heading) -> bool {
    is_section(heading, EXAMPLES)
}

fn is_section(heading: &Heading, name: &str) -> bool {
    heading.level == 2 && names(heading, name)
}

/// A heading may go on after the name, but not with the same word.
fn names(heading: &Heading, name: &str) -> bool {
    heading.text.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

fn check_present<'o>(
    outline: &Outline,
    section: &str,
    first: &'o Heading,
    others: impl Iterator<Item = &'o Heading>,
    problems: &mut Vec<Problem>,
) {
    let mut example_found = has_call(outline, first);
    problems.extend(empty(first, section));
    for again in others {
        let message = format!("the section “{section}” appears more than once");
        problems.push(
            Problem::warning("doc-duplicate-section", again.span.clone(), message)
                .with_help("merge the two, or rename one of them"),
        );
        problems.extend(empty(again, section));
        example_found |= has_call(outline, again);
    }
    if section == EXAMPLES && !example_found {
        problems.push(
            Problem::warning("doc-no-example", first.span.clone(), "the examples show no arguments")
                .with_help("add a ```json block with the arguments of a typical call"),
        );
    }
}

fn has_call(outline: &Outline, heading: &Heading) -> bool {
    let examples = outline.examples.get(heading.examples.clone()).unwrap_or_default();
    examples.iter().any(|example| example.kind == ExampleKind::Json)
}

fn empty(heading: &Heading, section: &str) -> Option<Problem> {
    let problem = || {
        let message = format!("the section “{section}” is empty");
        Problem::error("doc-empty-section", heading.span.clone(), message)
            .with_help("write at least one sentence; if nothing applies, say so")
    };
    (!heading.has_content).then(problem)
}

fn missing(outline: &Outline, section: &str) -> Problem {
    let span = outline.headings.first().map_or(0..0, |heading| heading.span.clone());
    let message = format!("the section “{section}” is missing");
    Problem::error("doc-missing-section", span, message).with_help(help_for(outline, section))
}

fn help_for(outline: &Outline, section: &str) -> String {
    let headings = || outline.headings.iter().take(MOST_CANDIDATES);
    if let Some(heading) = headings().find(|heading| names(heading, section)) {
        let level = heading.level;
        return format!(
            "“{}” stands at level {level}: make it a level-2 heading, `## {section}`",
            heading.text
        );
    }
    let strangers = headings()
        .filter(|heading| heading.level == 2 && !SECTIONS.iter().any(|known| names(heading, known)));
    let heads = strangers.map(|heading| head(&heading.text));
    match nearest(section, heads) {
        Some(near) => format!("did you mean `## {section}` where it says “{near}”?"),
        None => format!("add a heading `## {section}` with text below it"),
    }
}

/// The part of a heading before what it adds in brackets or after a colon or dash.
fn head(text: &str) -> &str {
    text.split(['(', ':', '–', '—']).next().unwrap_or(text).trim()
}

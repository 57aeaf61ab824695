//! The two Markdown files of a tool: the summary's size, and the sections and examples of the
//! documentation. Whether an example fits the schema is decided elsewhere.

mod examples;
mod outline;
mod sections;
mod summary;

pub use examples::{Example, ExampleKind};
pub use summary::check_summary;

use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocReport {
    pub problems: Vec<Problem>,
    pub examples: Vec<Example>,
}

pub fn check_doc(text: &str) -> DocReport {
    let outline = outline::read(text);
    let mut problems = sections::check(&outline);
    problems.extend(outline.unclosed_fences.iter().map(|span| {
        Problem::warning("doc-unclosed-fence", span.clone(), "this code fence is never closed").with_help(
            "close it with a line of the same fence characters; until then it swallows all that follows",
        )
    }));
    problems.sort_by_key(|problem| problem.span.start);
    DocReport { problems, examples: outline.examples }
}

#[cfg(test)]
#[path = "docs_tests.rs"]
#[rustfmt::skip] // tables
mod tests;

//! `handler.js` and the files it imports: parsed, never run. Checks that `execute` is an exported
//! function and that the modules reach for nothing but what the engine gives them.

mod collect;
mod dynamic;
mod early;
mod execute;
mod exports;
mod globals;
mod graph;
mod imports;
mod module;
mod parse;
mod search;
mod shape;
mod specifier;
mod value;

use crate::problem::Problem;

/// The files beside the handler.
pub trait Siblings {
    /// `path` is relative to the tool's own directory and normalised (`lib/x.js`); the error is a
    /// reason for the user.
    fn read(&self, path: &str) -> Result<String, String>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerReport {
    pub problems: Vec<FileProblem>,
    /// Path and source of the files that imports reach, sorted, without `handler.js`.
    pub modules: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileProblem {
    /// `handler.js` or `lib/x.js`.
    pub file: String,
    pub problem: Problem,
}

pub(crate) const HANDLER: &str = "handler.js";

pub fn check_handler(source: &str, siblings: &dyn Siblings) -> HandlerReport {
    let mut graph = graph::load(source, siblings);
    let mut problems = std::mem::take(&mut graph.problems);
    problems.extend(imports::check_names(&graph));
    problems.extend(execute::check(&graph, source));
    problems.sort_by(|left, right| place(left).cmp(&place(right)));
    HandlerReport { problems, modules: graph.sources.into_iter().collect() }
}

/// The handler's own problems come first, then the others by file; each file in reading order.
fn place(found: &FileProblem) -> (bool, &str, usize) {
    (found.file != HANDLER, &found.file, found.problem.span.start)
}

#[cfg(test)]
#[path = "handler_tests.rs"]
#[rustfmt::skip] // tables
mod tests;

#[cfg(test)]
#[path = "limits_tests.rs"]
#[rustfmt::skip] // tables
mod limits_tests;

#[cfg(test)]
#[path = "imports_tests.rs"]
#[rustfmt::skip] // tables
mod imports_tests;

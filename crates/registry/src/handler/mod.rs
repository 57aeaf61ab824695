//! Checks `handler.js` and the modules that it imports: parsed, never run. `execute` must be an exported function, and
//! imports and globals must exist where handlers run.

mod context_members;
mod dynamic_imports;
mod execute;
mod export_search;
mod globals;
mod graph;
mod module;
mod module_items;
mod parse_module;
mod shape;
mod specifier;

use std::ops::Range;

use toolwright_contract::handler_context::HostFunction;

use crate::diagnostic::{DiagnosticDraft, Location};

/// Reads the files beside the handler.
pub trait Siblings {
    /// `path` is relative to the tool's own directory and normalised (`lib/x.js`). The error is a reason for the
    /// user.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// The result of checking a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerReport {
    pub diagnostics: Vec<DiagnosticDraft>,
    /// Path and source of the imported files, sorted, without `handler.js`.
    pub modules: Vec<(String, String)>,
    /// The functions of `context` that it uses.
    pub uses: Vec<ContextUse>,
}

/// A use of a function of `context`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextUse {
    pub function: &'static HostFunction,
    pub file: String,
    pub span: Range<usize>,
}

pub(crate) const HANDLER: &str = "handler.js";

/// Checks a handler and all modules that it imports.
pub fn check_handler(source: &str, siblings: &dyn Siblings) -> HandlerReport {
    let mut graph = graph::load(source, siblings);
    let mut diagnostics = std::mem::take(&mut graph.diagnostics);
    diagnostics.extend(export_search::check_imported_names(&graph));
    diagnostics.extend(execute::check(&graph, source));
    let uses = graph.modules.values().flat_map(|module| module.uses.iter().cloned()).collect();
    HandlerReport { diagnostics, modules: graph.sources.into_iter().collect(), uses }
}

/// An error at a span of a module.
fn error(code: &'static str, file: &str, span: Range<usize>, message: String) -> DiagnosticDraft {
    DiagnosticDraft::error(code, file.to_owned(), Location::Span(span), message)
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

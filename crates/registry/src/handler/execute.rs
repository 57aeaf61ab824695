//! Whether `handler.js` exports a function `execute`, through however many modules.

use super::graph::Graph;
use super::module::{Export, Module};
use super::search::{Outcome, Place, find_export};
use super::{FileProblem, HANDLER};
use crate::problem::Problem;
use std::ops::Range;
use toolwright_contract::suggest::nearest;

const EXECUTE: &str = "execute";
const FORM: &str = "write `export async function execute({ args, context }) { … }`";

pub(super) fn check(graph: &Graph, source: &str) -> Option<FileProblem> {
    let module = graph.modules.get(HANDLER)?;
    if module.is_broken {
        return None;
    }
    match find_export(graph, HANDLER, EXECUTE) {
        Outcome::Function | Outcome::Unknown => None,
        Outcome::NotFunction { what, place } => {
            let here = || module.export(EXECUTE).map_or(0..0, |export| export.span.clone());
            Some(no_function(what, place.unwrap_or_else(|| Place { file: HANDLER.to_owned(), span: here() })))
        }
        Outcome::Variable { name, places, what, place } => {
            let text = graph.sources.get(&place.file).map_or(source, String::as_str);
            (assignments(text, &name) <= places).then(|| no_function(what, place))
        }
        Outcome::Missing => Some(FileProblem { file: HANDLER.to_owned(), problem: missing(module, source) }),
    }
}

fn no_function(what: &str, place: Place) -> FileProblem {
    let message = format!("`{EXECUTE}` must be a function, not {what}");
    let problem = Problem::error("handler-not-a-function", place.span, message).with_help(FORM);
    FileProblem { file: place.file, problem }
}

/// How often the text assigns to `name`, or seems to.
fn assignments(source: &str, name: &str) -> usize {
    let is_assignment = |(at, _): &(usize, &str)| {
        let rest = source[at + name.len()..].trim_start();
        rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>")
            || rest.starts_with("??=")
            || rest.starts_with("||=")
    };
    source.match_indices(name).filter(is_assignment).count()
}

fn missing(module: &Module, source: &str) -> Problem {
    let (span, help) = hint(module, source);
    Problem::error("handler-no-execute", span, format!("the handler does not export `{EXECUTE}`"))
        .with_help(help)
}

/// Where the author most likely meant to export it, and what to do there.
fn hint(module: &Module, source: &str) -> (Range<usize>, String) {
    if let Some(local) = module.local(EXECUTE) {
        return (
            local.span.clone(),
            format!("`{EXECUTE}` is declared but not exported: put `export` before it"),
        );
    }
    if let Some(export) = module.export("default") {
        return (
            export.span.clone(),
            format!("a default export is not enough, a named one is needed: {FORM}"),
        );
    }
    let commonjs = ["module.exports", "exports.", "require("];
    if let Some((at, found)) = commonjs.iter().find_map(|form| source.find(form).map(|at| (at, form))) {
        let help = format!("the handler must be an ES module, not CommonJS: {FORM}");
        return (at..at + found.len(), help);
    }
    let names = module.exports.iter().map(|export: &Export| export.name.as_str());
    if let Some(near) = nearest(EXECUTE, names) {
        let span = module.export(near).map_or(0..0, |export| export.span.clone());
        return (span, format!("`{near}` is exported: did you mean `{EXECUTE}`?"));
    }
    (0..0, FORM.to_owned())
}

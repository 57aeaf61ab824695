//! Checks that `handler.js` exports a function `execute`, directly or through other modules.

use toolwright_contract::suggest::nearest;

use super::export_search::find_export;
use super::graph::Graph;
use super::module::{Export, Module, Value};
use super::{HANDLER, error};
use crate::diagnostic::DiagnosticDraft;
use std::ops::Range;

const EXECUTE: &str = "execute";
const FORM: &str = "write `export async function execute({ args, context }) { … }`";

pub(super) fn check(graph: &Graph, source: &str) -> Option<DiagnosticDraft> {
    let module = graph.modules.get(HANDLER).filter(|module| !module.is_broken)?;
    let Some((file, value)) = find_export(graph, HANDLER, EXECUTE) else {
        return Some(missing(module, source));
    };
    let (what, span) = match value {
        Value::NotFunction { what, span } => (what, span.clone()),
        Value::Variable { name, assignments, what, span } => {
            let text = graph.sources.get(file).map_or(source, String::as_str);
            (what, (count_assignments(text, name) <= *assignments).then(|| Some(span.clone()))?)
        }
        _ => return None,
    };
    let (file, span) = match span {
        Some(span) => (file, span),
        None => (HANDLER, module.export(EXECUTE).map_or(0..0, |export| export.span.clone())),
    };
    let message = format!("`{EXECUTE}` must be a function, got {what}");
    Some(error("handler-not-a-function", file, span, message).with_help(FORM))
}

/// How often the text seems to assign to `name`.
fn count_assignments(source: &str, name: &str) -> usize {
    let is_assignment = |(at, _): &(usize, &str)| {
        let rest = source[at + name.len()..].trim_start();
        rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>")
            || rest.starts_with("??=")
            || rest.starts_with("||=")
    };
    source.match_indices(name).filter(is_assignment).count()
}

fn missing(module: &Module, source: &str) -> DiagnosticDraft {
    let (span, help) = likely_export(module, source);
    let message = format!("`{HANDLER}` does not export `{EXECUTE}`");
    error("handler-no-execute", HANDLER, span, message).with_help(help)
}

/// Where the author most likely meant to export it, and how to fix it there.
fn likely_export(module: &Module, source: &str) -> (Range<usize>, String) {
    if let Some(default) = module.export("default") {
        return (default.span.clone(), default_help(module, default, source));
    }
    if let Some(local) = module.local(EXECUTE) {
        return (
            local.span.clone(),
            format!("`{EXECUTE}` is declared but not exported: put `export` before it"),
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

/// How to turn a default export into the named one that is needed.
fn default_help(module: &Module, default: &Export, source: &str) -> String {
    // `export default function execute`, not `export default execute`.
    let after = source.get(default.span.end..).unwrap_or_default().trim_start();
    let is_declaration = ["async", "function"].iter().any(|word| after.starts_with(word));
    if module.local(EXECUTE).is_some() && is_declaration {
        format!("`{EXECUTE}` is the default export, and a named one is needed: remove `default`")
    } else if module.local(EXECUTE).is_some() {
        format!(
            "`{EXECUTE}` is the default export, and a named one is needed: write `export {{ {EXECUTE} }}`"
        )
    } else {
        format!("a default export is not enough, a named one is needed: {FORM}")
    }
}

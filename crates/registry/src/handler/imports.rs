//! Checks that imported names are exported by the module that they are imported from.

use toolwright_contract::suggest::{list, nearest};

use super::error;
use super::graph::Graph;
use super::module::{Name, Request};
use super::search::is_exported;
use super::specifier::{ERROR_TYPES, Target};
use crate::diagnostic::DiagnosticDraft;
use crate::excerpt::excerpt;

/// How many exports a message lists.
const MAX_LISTED: usize = 8;

pub(super) fn check_names(graph: &Graph) -> Vec<DiagnosticDraft> {
    let mut found = Vec::new();
    for (file, module) in &graph.modules {
        for request in &module.requests {
            found.extend(request.names.iter().filter_map(|name| check_name(graph, file, request, name)));
        }
    }
    found
}

fn check_name(graph: &Graph, file: &str, request: &Request, name: &Name) -> Option<DiagnosticDraft> {
    if is_exported(graph, &request.target, &name.text) {
        return None;
    }
    let known = exported_names(graph, &request.target);
    let message = match name.text.as_str() {
        "default" => format!("`{}` has no default export", excerpt(&request.specifier)),
        other => format!("`{}` does not export `{}`", excerpt(&request.specifier), excerpt(other)),
    };
    let mut draft = error("handler-import-name", file, name.span.clone(), message);
    match (nearest(&name.text, known.iter().copied()), known.as_slice()) {
        (Some(near), _) => draft.help(format!("did you mean `{near}`?")),
        (None, []) => &mut draft,
        (None, known) => {
            let more = if known.len() > MAX_LISTED { ", …" } else { "" };
            draft.help(format!("it exports {}{more}", list(&known[..known.len().min(MAX_LISTED)])))
        }
    };
    Some(draft)
}

/// For suggestions only: names of `export *` are not included.
fn exported_names<'g>(graph: &'g Graph, target: &Target) -> Vec<&'g str> {
    match target {
        Target::ErrorTypes => ERROR_TYPES.iter().map(|(name, _)| *name).collect(),
        Target::Sibling(path) => graph.modules.get(path).map_or_else(Vec::new, |module| {
            module.exports.iter().map(|export| export.name.as_str()).collect()
        }),
        Target::Unknown => Vec::new(),
    }
}

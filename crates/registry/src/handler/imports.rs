//! Whether the names that modules import are exported where they import them from.

use super::FileProblem;
use super::graph::Graph;
use super::module::{Name, Request};
use super::search::is_exported;
use super::specifier::{ERROR_TYPES, Target};
use crate::problem::Problem;
use toolwright_contract::suggest::nearest;

pub(super) fn check_names(graph: &Graph) -> Vec<FileProblem> {
    let mut found = Vec::new();
    for (file, module) in &graph.modules {
        for request in &module.requests {
            let problems = request.names.iter().filter_map(|name| check_name(graph, request, name));
            found.extend(problems.map(|problem| FileProblem { file: file.clone(), problem }));
        }
    }
    found
}

fn check_name(graph: &Graph, request: &Request, name: &Name) -> Option<Problem> {
    if is_exported(graph, &request.target, &name.text) {
        return None;
    }
    let known = exported_names(graph, &request.target);
    let message = match name.text.as_str() {
        "default" => format!("`{}` has no default export", request.specifier),
        other => format!("`{}` does not export `{other}`", request.specifier),
    };
    let help = match (nearest(&name.text, known.iter().copied()), known.is_empty()) {
        (Some(near), _) => Some(format!("did you mean `{near}`?")),
        (None, true) => None,
        (None, false) => Some(format!("it exports {}", listed(&known))),
    };
    Some(Problem::error("handler-import-name", name.span.clone(), message).with_help_if(help))
}

const MOST_LISTED: usize = 8;

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(MOST_LISTED).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > MOST_LISTED { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// For suggestions only: names behind `export *` are left out.
fn exported_names<'g>(graph: &'g Graph, target: &Target) -> Vec<&'g str> {
    match target {
        Target::ErrorTypes => ERROR_TYPES.iter().map(|(name, _)| *name).collect(),
        Target::Sibling(path) => graph.modules.get(path).map_or_else(Vec::new, |module| {
            module.exports.iter().map(|export| export.name.as_str()).collect()
        }),
        Target::Refused => Vec::new(),
    }
}

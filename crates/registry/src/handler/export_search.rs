//! Follows a name through exports, bindings and imports, from module to module, and checks that imported names exist.

use toolwright_contract::suggest::{list, nearest};

use super::error;
use super::graph::Graph;
use super::module::{Module, Name, Request, Value};
use super::specifier::{ERROR_TYPES, Target};
use crate::diagnostic::DiagnosticDraft;
use crate::excerpt::excerpt;
use std::collections::BTreeSet;

/// Maximum number of renamings that are followed, within a module and between modules; the search is recursive.
const MAX_STEPS: usize = 100;
/// Maximum number of exports in a message.
const MAX_LISTED: usize = 8;

/// A value and the file that declares it, which is empty for what Toolwright exports.
pub(super) type ResolvedExport<'g> = (&'g str, &'g Value);

/// It is exported, or may be: known only at run time.
const UNKNOWN: ResolvedExport<'static> = ("", &Value::Unknown);

/// The value that the module at `path` exports as `name`; `None` if there is no such export.
pub(super) fn find_export<'g>(graph: &'g Graph, path: &'g str, name: &'g str) -> Option<ResolvedExport<'g>> {
    Search { graph, seen: BTreeSet::new() }.module(path, name)
}

/// Checks that imported names are exported by the module that they are imported from.
pub(super) fn check_imported_names(graph: &Graph) -> Vec<DiagnosticDraft> {
    let mut found = Vec::new();
    for (file, module) in &graph.modules {
        for request in &module.requests {
            found.extend(request.names.iter().filter_map(|name| check_name(graph, file, request, name)));
        }
    }
    found
}

fn check_name(graph: &Graph, file: &str, request: &Request, name: &Name) -> Option<DiagnosticDraft> {
    if (Search { graph, seen: BTreeSet::new() }).target(&request.target, &name.text).is_some() {
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

struct Search<'g> {
    graph: &'g Graph,
    /// Modules and names already visited: modules may import each other in a circle.
    seen: BTreeSet<(&'g str, &'g str)>,
}

impl<'g> Search<'g> {
    fn target(&mut self, target: &'g Target, name: &'g str) -> Option<ResolvedExport<'g>> {
        match target {
            Target::Unknown => Some(UNKNOWN),
            Target::ErrorTypes => {
                ERROR_TYPES.iter().find(|(known, _)| *known == name).map(|(_, value)| ("", value))
            }
            Target::Sibling(path) => self.module(path, name),
        }
    }

    fn module(&mut self, path: &'g str, name: &'g str) -> Option<ResolvedExport<'g>> {
        let Some(module) = self.graph.modules.get(path) else { return Some(UNKNOWN) };
        if module.is_broken || self.seen.len() > MAX_STEPS {
            return Some(UNKNOWN);
        }
        if !self.seen.insert((path, name)) {
            return None;
        }
        match module.export(name) {
            Some(export) => Some(self.value(path, module, &export.value)),
            // `export *` re-exports all names except `default`.
            None if name == "default" => None,
            None => self.follow_star_exports(module, name),
        }
    }

    fn follow_star_exports(&mut self, module: &'g Module, name: &'g str) -> Option<ResolvedExport<'g>> {
        let mut result = None;
        for target in module.star_targets() {
            match self.target(target, name) {
                None => {}
                Some((_, Value::Unknown)) => result = Some(UNKNOWN),
                found => return found,
            }
        }
        result
    }

    fn value(&mut self, path: &'g str, module: &'g Module, value: &'g Value) -> ResolvedExport<'g> {
        match resolve(module, value) {
            Value::Local(_) => UNKNOWN,
            Value::Imported { request, name } => {
                let request = module.requests.get(*request);
                // A missing name is reported where it is imported.
                request.and_then(|request| self.target(&request.target, name)).unwrap_or(UNKNOWN)
            }
            known => (path, known),
        }
    }
}

/// The value behind names of the same module; still a name if it is undeclared or refers to itself.
fn resolve<'m>(module: &'m Module, mut value: &'m Value) -> &'m Value {
    for _ in 0..MAX_STEPS {
        match value {
            Value::Local(name) => match module.local(name) {
                Some(local) => value = &local.value,
                None => break,
            },
            _ => break,
        }
    }
    value
}

//! Follows a name through exports, bindings and imports, from module to module.

use super::graph::Graph;
use super::module::{Module, Value};
use super::specifier::{ERROR_TYPES, Target};
use std::collections::BTreeSet;
use std::ops::Range;

/// How many renamings are followed, within a module and between modules; the search is recursive.
const MAX_STEPS: usize = 100;

/// What kind of value a module exports under a name.
#[derive(Debug)]
pub(super) enum ExportKind {
    Function,
    /// It is exported, or may be: known only at run time.
    Unknown,
    NotFunction {
        what: &'static str,
        at: Option<SourceSpan>,
    },
    /// Not a function, unless it is assigned to more often than in its declaration.
    Variable {
        name: String,
        assignments: usize,
        what: &'static str,
        at: SourceSpan,
    },
    Missing,
}

/// A span of a module's source.
#[derive(Debug)]
pub(super) struct SourceSpan {
    pub file: String,
    pub span: Range<usize>,
}

/// What the module at `path` exports as `name`.
pub(super) fn find_export(graph: &Graph, path: &str, name: &str) -> ExportKind {
    Search { graph, seen: BTreeSet::new() }.module(path, name)
}

/// Whether `name` can be imported from `target`; also true if that is unknown. A name that the target re-exports from
/// another module is checked there.
pub(super) fn is_exported(graph: &Graph, target: &Target, name: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![target];
    while let Some(target) = waiting.pop() {
        let path = match target {
            Target::Unknown => return true,
            Target::ErrorTypes if ERROR_TYPES.iter().any(|(known, _)| *known == name) => {
                return true;
            }
            Target::ErrorTypes => continue,
            Target::Sibling(path) => path,
        };
        let Some(module) = graph.modules.get(path) else {
            return true;
        };
        if module.is_broken || module.export(name).is_some() {
            return true;
        }
        // `export *` re-exports all names except `default`.
        if seen.insert(path) && name != "default" {
            waiting.extend(module.star_targets());
        }
    }
    false
}

struct Search<'g> {
    graph: &'g Graph,
    /// Modules and names already visited: modules may import each other in a circle.
    seen: BTreeSet<(String, String)>,
}

impl Search<'_> {
    fn target(&mut self, target: &Target, name: &str) -> ExportKind {
        match target {
            Target::Unknown => ExportKind::Unknown,
            Target::ErrorTypes => error_types_export(name),
            Target::Sibling(path) => self.module(path, name),
        }
    }

    fn module(&mut self, path: &str, name: &str) -> ExportKind {
        let Some(module) = self.graph.modules.get(path) else {
            return ExportKind::Unknown;
        };
        if module.is_broken || self.seen.len() > MAX_STEPS {
            return ExportKind::Unknown;
        }
        if !self.seen.insert((path.to_owned(), name.to_owned())) {
            return ExportKind::Missing;
        }
        match module.export(name) {
            Some(export) => self.value(path, module, &export.value),
            None if name == "default" => ExportKind::Missing,
            None => self.stars(module, name),
        }
    }

    fn stars(&mut self, module: &Module, name: &str) -> ExportKind {
        let mut result = ExportKind::Missing;
        for target in module.star_targets() {
            match self.target(target, name) {
                ExportKind::Missing => {}
                ExportKind::Unknown => result = ExportKind::Unknown,
                found => return found,
            }
        }
        result
    }

    fn value(&mut self, path: &str, module: &Module, value: &Value) -> ExportKind {
        let at = |span: &Range<usize>| SourceSpan { file: path.to_owned(), span: span.clone() };
        match resolve(module, value) {
            Value::Function => ExportKind::Function,
            Value::Unknown | Value::Local(_) => ExportKind::Unknown,
            Value::Namespace => ExportKind::NotFunction { what: "a module", at: None },
            Value::NotFunction { what, span } => ExportKind::NotFunction { what, at: Some(at(span)) },
            Value::Variable { name, assignments, what, span } => {
                let (name, assignments, at) = (name.clone(), *assignments, at(span));
                ExportKind::Variable { name, assignments, what, at }
            }
            Value::Imported { request, name } => match module.requests.get(*request) {
                Some(request) => match self.target(&request.target, name) {
                    // The import itself is reported by `imports`.
                    ExportKind::Missing => ExportKind::Unknown,
                    found => found,
                },
                None => ExportKind::Unknown,
            },
        }
    }
}

/// The value behind names of the same module; still a name if it is undeclared or refers to itself.
fn resolve<'m>(module: &'m Module, value: &'m Value) -> &'m Value {
    let mut value = value;
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

fn error_types_export(name: &str) -> ExportKind {
    match ERROR_TYPES.iter().find(|(known, _)| *known == name) {
        Some((_, what)) => ExportKind::NotFunction { what, at: None },
        None => ExportKind::Missing,
    }
}

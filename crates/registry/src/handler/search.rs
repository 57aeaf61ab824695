//! Names followed through exports, bindings and imports, from module to module.

use super::graph::Graph;
use super::module::{Module, Value};
use super::specifier::{ERROR_TYPES, Target};
use std::collections::BTreeSet;
use std::ops::Range;

/// Renamings followed, within a module and between modules; the search is recursive.
const MOST_STEPS: usize = 100;

/// What an exported name turns out to be.
#[derive(Debug)]
pub(super) enum Outcome {
    Function,
    /// It is exported, or may be: only running it would tell more.
    Unknown,
    NotFunction {
        what: &'static str,
        place: Option<Place>,
    },
    /// No function, unless it is assigned to in more places than its declaration.
    Variable {
        name: String,
        places: usize,
        what: &'static str,
        place: Place,
    },
    Missing,
}

#[derive(Debug)]
pub(super) struct Place {
    pub file: String,
    pub span: Range<usize>,
}

/// What the module at `path` exports as `name`.
pub(super) fn find_export(graph: &Graph, path: &str, name: &str) -> Outcome {
    Search { graph, seen: BTreeSet::new() }.module(path, name)
}

/// Whether `name` can be imported from `target`; true as well when that cannot be known. What the
/// target itself passes on from elsewhere is looked at where it does so.
pub(super) fn is_exported(graph: &Graph, target: &Target, name: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![target];
    while let Some(target) = waiting.pop() {
        let path = match target {
            Target::Refused => return true,
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
        // `export *` passes on all names but `default`.
        if seen.insert(path) && name != "default" {
            waiting.extend(module.star_targets());
        }
    }
    false
}

struct Search<'g> {
    graph: &'g Graph,
    /// Modules and names on the way: modules may import each other in a circle.
    seen: BTreeSet<(String, String)>,
}

impl Search<'_> {
    fn target(&mut self, target: &Target, name: &str) -> Outcome {
        match target {
            Target::Refused => Outcome::Unknown,
            Target::ErrorTypes => provided(name),
            Target::Sibling(path) => self.module(path, name),
        }
    }

    fn module(&mut self, path: &str, name: &str) -> Outcome {
        let Some(module) = self.graph.modules.get(path) else {
            return Outcome::Unknown;
        };
        if module.is_broken || self.seen.len() > MOST_STEPS {
            return Outcome::Unknown;
        }
        if !self.seen.insert((path.to_owned(), name.to_owned())) {
            return Outcome::Missing;
        }
        match module.export(name) {
            Some(export) => self.value(path, module, &export.value),
            None if name == "default" => Outcome::Missing,
            None => self.stars(module, name),
        }
    }

    fn stars(&mut self, module: &Module, name: &str) -> Outcome {
        let mut result = Outcome::Missing;
        for target in module.star_targets() {
            match self.target(target, name) {
                Outcome::Missing => {}
                Outcome::Unknown => result = Outcome::Unknown,
                found => return found,
            }
        }
        result
    }

    fn value(&mut self, path: &str, module: &Module, value: &Value) -> Outcome {
        let place = |span: &Range<usize>| Place { file: path.to_owned(), span: span.clone() };
        match resolve(module, value) {
            Value::Function => Outcome::Function,
            Value::Unknown | Value::Local(_) => Outcome::Unknown,
            Value::Namespace => Outcome::NotFunction { what: "a module", place: None },
            Value::NotFunction { what, span } => Outcome::NotFunction { what, place: Some(place(span)) },
            Value::Variable { name, places, what, span } => {
                let (name, places, place) = (name.clone(), *places, place(span));
                Outcome::Variable { name, places, what, place }
            }
            Value::Imported { request, name } => match module.requests.get(*request) {
                Some(request) => match self.target(&request.target, name) {
                    // The import itself is reported.
                    Outcome::Missing => Outcome::Unknown,
                    found => found,
                },
                None => Outcome::Unknown,
            },
        }
    }
}

/// The value behind names of the same module; a name when it leads nowhere or in a circle.
fn resolve<'m>(module: &'m Module, value: &'m Value) -> &'m Value {
    let mut value = value;
    for _ in 0..MOST_STEPS {
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

fn provided(name: &str) -> Outcome {
    match ERROR_TYPES.iter().find(|(known, _)| *known == name) {
        Some((_, what)) => Outcome::NotFunction { what, place: None },
        None => Outcome::Missing,
    }
}

//! One parsed module, as owned data for the checks: the syntax tree lives only during the parse.

use super::ContextUse;
use super::specifier::Target;
use crate::diagnostic::DiagnosticDraft;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// One parsed module.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Its path in the tool's directory.
    pub file: String,
    pub diagnostics: Vec<DiagnosticDraft>,
    /// Every import of another module.
    pub requests: Vec<Request>,
    pub exports: Vec<Export>,
    /// Requests of `export * from`, as indices.
    pub stars: Vec<usize>,
    /// The functions of `context` that it certainly uses, each once.
    pub uses: Vec<ContextUse>,
    /// The parser failed: what the module exports is unknown.
    pub is_broken: bool,
    /// Positions in `exports`.
    exports_by_name: HashMap<String, usize>,
    /// The top-level bindings by name; of repeated ones the first.
    locals: HashMap<String, Local>,
}

/// An import, or an export from another module.
#[derive(Debug)]
pub(super) struct Request {
    pub specifier: String,
    pub span: Range<usize>,
    /// The names imported from the target (`default` is one).
    pub names: Vec<Name>,
    /// Import attributes or a phase, which the engine does not support.
    pub attributes: Option<Range<usize>>,
    pub target: Target,
}

#[derive(Debug)]
pub(super) struct Name {
    pub text: String,
    pub span: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Export {
    pub name: String,
    pub span: Range<usize>,
    pub value: Value,
}

/// A top-level binding.
#[derive(Debug)]
pub(super) struct Local {
    pub name: String,
    pub span: Range<usize>,
    pub value: Value,
    pub binding: Binding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// May be declared again by another `var`.
    Var,
    Lexical,
}

/// The value of a binding or export, as far as the syntax shows it.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Function,
    /// A call, a member, a parameter: known only at run time.
    Unknown,
    /// The span is `None` for a whole module and for what Toolwright exports.
    NotFunction {
        what: &'static str,
        span: Option<Range<usize>>,
    },
    /// Not a function when declared, but a `let` or `var` may be assigned one later. `assignments` counts those of
    /// its own declaration.
    Variable {
        name: String,
        assignments: usize,
        what: &'static str,
        span: Range<usize>,
    },
    /// The value of another top-level binding.
    Local(String),
    Imported {
        request: usize,
        name: String,
    },
}

impl Value {
    /// `import * as ns`, `export * as ns`.
    pub const NAMESPACE: Self = Self::NotFunction { what: "a module", span: None };
}

impl Module {
    pub fn new(file: &str, is_broken: bool) -> Self {
        Self { file: file.to_owned(), is_broken, ..Self::default() }
    }

    /// A module that could not be parsed, and why.
    pub fn unparsed(file: &str, diagnostic: DiagnosticDraft) -> Self {
        Self { diagnostics: vec![diagnostic], ..Self::new(file, true) }
    }

    /// Reports an error in this module.
    pub fn error(&mut self, code: &'static str, span: Range<usize>, message: String) -> &mut DiagnosticDraft {
        self.diagnostics.push_mut(super::error(code, &self.file, span, message))
    }

    pub fn add_export(&mut self, name: String, span: Range<usize>, value: Value) {
        self.exports_by_name.entry(name.clone()).or_insert(self.exports.len());
        self.exports.push(Export { name, span, value });
    }

    /// Adds a binding. The parser does not report one that is declared twice.
    pub fn add_local(&mut self, local: Local) {
        match self.locals.entry(local.name.clone()) {
            Entry::Vacant(free) => drop(free.insert(local)),
            Entry::Occupied(mut earlier) => {
                let before = std::mem::replace(&mut earlier.get_mut().binding, local.binding);
                if [before, local.binding] != [Binding::Var; 2] {
                    let message = format!("`{}` is declared more than once in `{}`", local.name, self.file);
                    self.error("handler-syntax", local.span, message);
                }
            }
        }
    }

    /// Reports exported names that are not declared, which the parser does not.
    pub fn check_exports(&mut self) {
        let undeclared = |export: &Export| match &export.value {
            // `export const a = b` may name a global; only `export { b }` must name a binding.
            Value::Local(name) if self.local(name).is_none() => {
                let is_declared = export.name == "default" || self.local(&export.name).is_some();
                (!is_declared).then(|| (export.span.clone(), name.clone()))
            }
            _ => None,
        };
        let undeclared: Vec<_> = self.exports.iter().filter_map(undeclared).collect();
        for (span, name) in undeclared {
            let message = format!("`{name}` is exported but not declared in `{}`", self.file);
            self.error("handler-syntax", span, message);
        }
    }

    pub fn star_targets(&self) -> impl Iterator<Item = &Target> {
        self.stars.iter().filter_map(|star| self.requests.get(*star)).map(|request| &request.target)
    }

    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports_by_name.get(name).map(|at| &self.exports[*at])
    }

    pub fn local(&self, name: &str) -> Option<&Local> {
        self.locals.get(name)
    }
}

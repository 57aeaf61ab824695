//! What the checks need of one parsed module, as owned data: the syntax tree lives only during the parse.

use super::specifier::Target;
use crate::diagnostic::DiagnosticDraft;
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
    /// The top-level bindings.
    pub locals: Vec<Local>,
    /// The parser failed: what the module exports is unknown.
    pub is_broken: bool,
    /// `exports` and `locals` in the order of their names.
    export_order: Vec<usize>,
    local_order: Vec<usize>,
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
    NotFunction {
        what: &'static str,
        span: Range<usize>,
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
    /// `import * as ns`, `export * as ns`.
    Namespace,
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

    /// Sorts exports and bindings by name for lookups. Called once all of them are known.
    pub fn index(&mut self) {
        self.export_order = (0..self.exports.len()).collect();
        self.export_order.sort_by(|a, b| self.exports[*a].name.cmp(&self.exports[*b].name));
        self.local_order = (0..self.locals.len()).collect();
        self.local_order.sort_by(|a, b| self.locals[*a].name.cmp(&self.locals[*b].name));
    }

    /// Bindings that repeat the name of an earlier one, where that is an error.
    pub fn redeclared(&self) -> impl Iterator<Item = &Local> {
        let pairs = self.local_order.windows(2).filter_map(|pair| match pair {
            [first, second] => Some((&self.locals[*first], &self.locals[*second])),
            _ => None,
        });
        let is_error = |(first, second): &(&Local, &Local)| {
            first.name == second.name && [first.binding, second.binding] != [Binding::Var; 2]
        };
        pairs.filter(is_error).map(|(_, second)| second)
    }

    pub fn star_targets(&self) -> impl Iterator<Item = &Target> {
        self.stars.iter().filter_map(|star| self.requests.get(*star)).map(|request| &request.target)
    }

    pub fn export(&self, name: &str) -> Option<&Export> {
        let at = self.export_order.partition_point(|at| self.exports[*at].name.as_str() < name);
        self.export_order.get(at).map(|at| &self.exports[*at]).filter(|export| export.name == name)
    }

    pub fn local(&self, name: &str) -> Option<&Local> {
        let at = self.local_order.partition_point(|at| self.locals[*at].name.as_str() < name);
        self.local_order.get(at).map(|at| &self.locals[*at]).filter(|local| local.name == name)
    }
}

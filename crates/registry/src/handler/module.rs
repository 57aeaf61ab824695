//! What the checks need to know of one parsed module, in owned data: the syntax tree lives only
//! as long as the parse.

use super::specifier::Target;
use crate::problem::Problem;
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Module {
    pub problems: Vec<Problem>,
    /// Every place that names another module.
    pub requests: Vec<Request>,
    pub exports: Vec<Export>,
    /// Requests of `export * from`, as indices.
    pub stars: Vec<usize>,
    /// The top-level bindings.
    pub locals: Vec<Local>,
    /// The parser gave up: what the module exports is unknown.
    pub is_broken: bool,
    /// `exports` and `locals` in the order of their names.
    export_order: Vec<usize>,
    local_order: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Request {
    pub specifier: String,
    pub span: Range<usize>,
    /// The names wanted from the target (`default` is one).
    pub names: Vec<Name>,
    /// Import attributes or a phase, which the engine has no use for.
    pub extra: Option<Range<usize>>,
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

#[derive(Debug, Clone)]
pub(super) enum Value {
    Function,
    /// A call, a member, a parameter: only running it would tell.
    Unknown,
    NotFunction {
        what: &'static str,
        span: Range<usize>,
    },
    /// No function when declared, but a `let` or `var` may be given one later. `places` is how
    /// often its own declaration assigns to it.
    Variable {
        name: String,
        places: usize,
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
    /// A module that was not parsed, and why.
    pub fn refused(problem: Problem) -> Self {
        Self { problems: vec![problem], is_broken: true, ..Self::default() }
    }

    /// To be called when all exports and bindings are known, before they are looked up.
    pub fn index(&mut self) {
        self.export_order = (0..self.exports.len()).collect();
        self.export_order.sort_by(|a, b| self.exports[*a].name.cmp(&self.exports[*b].name));
        self.local_order = (0..self.locals.len()).collect();
        self.local_order.sort_by(|a, b| self.locals[*a].name.cmp(&self.locals[*b].name));
    }

    /// Bindings of which an earlier one has the same name, where that is an error.
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

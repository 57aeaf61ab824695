//! The linter's results, and where they are collected.

use serde_json::Value;

use super::lint_help::describe;
use crate::pointer::{Location, Part};

/// One reason to refuse a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Stable, kebab-case, starts with `schema-`.
    pub code: &'static str,
    /// RFC 6901, relative to the linted schema; always names something that exists.
    pub pointer: String,
    pub part: Part,
    pub message: String,
    pub help: Option<String>,
}

impl Problem {
    pub(super) fn at_value(code: &'static str, location: &Location<'_>, message: impl Into<String>) -> Self {
        Self { code, pointer: location.to_pointer(), part: Part::Value, message: message.into(), help: None }
    }

    pub(super) fn at_key(code: &'static str, location: &Location<'_>, message: impl Into<String>) -> Self {
        Self { part: Part::Key, ..Self::at_value(code, location, message) }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn help_if(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }
}

/// Further problems are not reported.
const MAX_PROBLEMS: usize = 100;

#[derive(Default)]
pub struct Report {
    pub problems: Vec<Problem>,
}

impl Report {
    /// Adds a problem, once: a definition is visited for each reference to it.
    pub fn add(&mut self, problem: Problem) {
        if !self.is_full() && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The value of a keyword has the wrong form.
    pub fn invalid(&mut self, location: &Location<'_>, message: impl Into<String>) {
        self.add(Problem::at_value("schema-invalid", location, message));
    }

    /// The value of the keyword `name` is not what it must be.
    pub fn wrong(&mut self, location: &Location<'_>, name: &str, wanted: &str, value: &Value) {
        self.invalid(location, format!("`{name}` must be {wanted}, got {}", describe(value)));
    }

    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }
}

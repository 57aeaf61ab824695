//! What the linter hands back, and the place it is about. A path lives on the stack as a chain of
//! borrowed steps and becomes text only when there is a problem to report.

use std::fmt::Write;

pub use crate::pointer::Part;

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

/// After so many, more would only bury the first.
pub const MOST_PROBLEMS: usize = 100;

#[derive(Default)]
pub struct Report {
    problems: Vec<Problem>,
}

impl Report {
    /// Adds a problem, once: a definition is walked anew for each reference to it.
    pub fn add(
        &mut self,
        code: &'static str,
        path: &Path<'_>,
        part: Part,
        message: String,
        help: Option<String>,
    ) {
        if self.problems.len() >= MOST_PROBLEMS {
            return;
        }
        let problem = Problem { code, pointer: path.render(), part, message, help };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The value of a keyword is not what the keyword takes.
    pub fn invalid(&mut self, path: &Path<'_>, message: impl Into<String>) {
        self.add("schema-invalid", path, Part::Value, message.into(), None);
    }

    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Path<'p> {
    Root,
    /// A place reached through a reference, already rendered.
    At(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    pub fn key(&'p self, key: &'p str) -> Path<'p> {
        Path::Key(self, key)
    }

    pub fn index(&'p self, index: usize) -> Path<'p> {
        Path::Index(self, index)
    }

    pub fn render(&self) -> String {
        let mut text = String::new();
        self.render_into(&mut text);
        text
    }

    fn render_into(&self, text: &mut String) {
        match self {
            Path::Root => {}
            Path::At(pointer) => text.push_str(pointer),
            Path::Key(parent, key) => {
                parent.render_into(text);
                push_step(text, key);
            }
            Path::Index(parent, index) => {
                parent.render_into(text);
                // Writing into a String cannot fail.
                let _ = write!(text, "/{index}");
            }
        }
    }
}

/// Appends one escaped reference token.
pub fn push_step(pointer: &mut String, step: &str) {
    pointer.push('/');
    for character in step.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

//! Diagnostics: what is wrong with a tool, where, and how to fix it. Data only; the cli renders them.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use toolwright_schema::pointer::Part;

use crate::json::locate;

/// Whether a diagnostic stops the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// Where in a file a diagnostic points, in the terms of the check that reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// The whole file, or a file that does not exist.
    File,
    /// A byte range of the file.
    Span(Range<usize>),
    /// A line and column, counted from 1, of a file whose text is not stored.
    Position { line: usize, column: usize },
    /// A key or value of a JSON file.
    Json { pointer: String, part: Part },
}

/// A diagnostic whose line and column are not computed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosticDraft {
    pub severity: Severity,
    pub code: &'static str,
    /// Relative to the tool's directory; empty for the directory itself.
    pub file: Cow<'static, str>,
    pub location: Location,
    /// Names the field, file or tool and the value, so that it reads without the source beside it.
    pub message: String,
    pub help: Option<String>,
}

/// One problem in a tool. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Cow<'static, str>,
    /// The directory's name; empty when the diagnostic is about the tools directory itself.
    pub tool: String,
    /// Relative to the tool's directory; empty for the directory itself.
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The bytes to underline; `None` when there is no text to show.
    pub span: Option<Range<usize>>,
    pub message: String,
    pub help: Option<String>,
}

impl Diagnostic {
    /// Reports are sorted by tool, file and position.
    pub(crate) fn sort_key(&self) -> (&str, &str, usize, usize) {
        (&self.tool, &self.file, self.line, self.column)
    }
}

impl DiagnosticDraft {
    /// An error at any location.
    pub fn error(
        code: &'static str,
        file: impl Into<Cow<'static, str>>,
        location: Location,
        message: impl Into<String>,
    ) -> Self {
        let (file, message) = (file.into(), message.into());
        Self { severity: Severity::Error, code, file, location, message, help: None }
    }

    /// An error at the value that `pointer` names in a JSON file.
    pub fn json(
        code: &'static str,
        file: impl Into<Cow<'static, str>>,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::error(code, file, Location::Json { pointer: pointer.into(), part: Part::Value }, message)
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help(help);
        self
    }

    /// Adds how to fix it.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        self.help = Some(help.into());
        self
    }

    /// Points at the key instead of the value.
    pub fn at_key(&mut self) -> &mut Self {
        if let Location::Json { part, .. } = &mut self.location {
            *part = Part::Key;
        }
        self
    }

    /// Makes it a warning, which does not stop the build.
    pub fn warning(&mut self) -> &mut Self {
        self.severity = Severity::Warning;
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The bytes that a draft with a span points at.
    #[cfg(test)]
    pub(crate) fn span(&self) -> Range<usize> {
        match &self.location {
            Location::Span(span) => span.clone(),
            _ => 0..0,
        }
    }

    /// Computes line and column. `text` is the file's text, if it could be read.
    pub fn locate(self, tool: &str, text: Option<&str>) -> Diagnostic {
        let span = text.and_then(|text| match &self.location {
            Location::File | Location::Position { .. } => None,
            Location::Span(span) => Some(clip(text, span)),
            Location::Json { pointer, part } => locate_nearest(text, pointer, *part),
        });
        let (line, column) = match (text, &span, &self.location) {
            (_, _, Location::Position { line, column }) => (*line, *column),
            (Some(text), Some(span), _) => position(text, span.start),
            _ => (1, 1),
        };
        Diagnostic {
            severity: self.severity,
            code: Cow::Borrowed(self.code),
            tool: tool.to_owned(),
            file: self.file.into_owned(),
            line,
            column,
            span,
            message: self.message,
            help: self.help,
        }
    }
}

/// The span of the value that `pointer` names, or of its nearest ancestor that exists.
fn locate_nearest(text: &str, mut pointer: &str, part: Part) -> Option<Range<usize>> {
    loop {
        if let Some(span) = locate(text, pointer, part) {
            return Some(span);
        }
        pointer = &pointer[..pointer.rfind('/')?];
    }
}

fn clip(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    start..text.floor_char_boundary(span.end).max(start)
}

/// Line and column of an offset, both from 1, the column in characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
#[path = "diagnostic_tests.rs"]
mod tests;

//! What is wrong with a tool, where, and how to mend it. Data only: the cli decides how it is shown.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::json::locate;
use toolwright_schema::pointer::Part;

/// Whether a finding stops the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// Where in a file a finding is, as the check that found it knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole, or a file that is not there.
    File,
    /// Bytes of the file.
    Span(Range<usize>),
    /// A line and column, counted from 1, of a file that is not kept as text.
    At { line: usize, column: usize },
    /// A key or value of a JSON file.
    Json { pointer: String, part: Part },
}

/// One thing that a check found in one file of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub code: &'static str,
    /// Relative to the tool's directory; empty for the directory itself.
    pub file: Cow<'static, str>,
    pub place: Place,
    pub message: String,
    pub help: Option<String>,
}

/// A finding with its position worked out. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub code: Cow<'static, str>,
    /// The directory's name; empty when the finding is about the tools directory itself.
    pub tool: String,
    /// Relative to the tool's directory; empty for the directory itself.
    pub file: String,
    pub line: usize,
    pub column: usize,
    /// The offending bytes of the file, for underlining; `None` when there is no text to show.
    pub span: Option<Range<usize>>,
    pub message: String,
    pub help: Option<String>,
}

impl Diagnostic {
    /// What reports are sorted by.
    pub(crate) fn place(&self) -> (&str, &str, usize, usize) {
        (&self.tool, &self.file, self.line, self.column)
    }
}

impl Finding {
    /// An error in a JSON file, at the value that the pointer names.
    pub fn json(
        code: &'static str,
        file: impl Into<Cow<'static, str>>,
        pointer: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let place = Place::Json { pointer: pointer.into(), part: Part::Value };
        Self::error(code, file, place, message)
    }

    /// An error anywhere.
    pub fn error(
        code: &'static str,
        file: impl Into<Cow<'static, str>>,
        place: Place,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            code,
            file: file.into(),
            place,
            message: message.into(),
            help: None,
        }
    }

    /// Adds how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Points at the key instead of the value.
    #[must_use]
    pub fn at_key(mut self) -> Self {
        if let Place::Json { part, .. } = &mut self.place {
            *part = Part::Key;
        }
        self
    }

    /// Lets the build go on.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Works out line and column. `text` is the file's text, when there is one.
    pub fn locate(self, tool: &str, text: Option<&str>) -> Diagnostic {
        let span = text.and_then(|text| match &self.place {
            Place::File | Place::At { .. } => None,
            Place::Span(span) => Some(clip(text, span)),
            Place::Json { pointer, part } => {
                // A pointer may name what is not there; its nearest ancestor is.
                let mut pointer = pointer.as_str();
                loop {
                    if let Some(span) = locate(text, pointer, *part) {
                        return Some(span);
                    }
                    pointer = &pointer[..pointer.rfind('/')?];
                }
            }
        });
        let (line, column) = match (text, &span, &self.place) {
            (_, _, Place::At { line, column }) => (*line, *column),
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

fn clip(text: &str, span: &Range<usize>) -> Range<usize> {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(span.start);
    start..boundary(span.end).max(start)
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

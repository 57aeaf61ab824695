//! A finding in one text file, before it is known whose file it is.

use std::borrow::Cow;
use std::ops::Range;

use crate::diagnostic::{Finding, Place, Severity};

/// What is wrong, and which bytes of the text are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub severity: Severity,
    pub code: &'static str,
    pub span: Range<usize>,
    pub message: String,
    pub help: Option<String>,
}

impl Problem {
    pub(crate) fn error(code: &'static str, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, code, span, message: message.into(), help: None }
    }

    pub(crate) fn warning(code: &'static str, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn with_help_if(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    pub(crate) fn into_finding(self, file: impl Into<Cow<'static, str>>) -> Finding {
        let Self { severity, code, span, message, help } = self;
        Finding { severity, code, file: file.into(), place: Place::Span(span), message, help }
    }
}

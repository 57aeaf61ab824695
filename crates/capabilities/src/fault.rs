//! How a capability fails: a code of docs/reference/capabilities.md and a message that a handler may read.
//! Messages name what the handler itself wrote (its host, its header), never what lies behind it (addresses, values).

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub code: &'static str,
    pub message: String,
}

impl Fault {
    /// A failure with one of the documented codes.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn not_allowed(message: impl Into<String>) -> Self {
        Self::new("NOT_ALLOWED", message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("INVALID_ARGUMENT", message)
    }

    /// Nothing was sent: a handler may report that there are no effects.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new("UNREACHABLE", message)
    }

    /// Something was sent and no whole answer came back: effects are possible.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self::new("TIMEOUT", message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Fault {}

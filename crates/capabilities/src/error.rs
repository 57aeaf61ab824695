//! The error of a capability: a code that docs/reference/capabilities.md lists, and a message that a handler may read.
//! Messages name what the handler wrote (its host, its header), never addresses, values or file paths of the server.

/// A result of a capability call.
pub type Result<T, E = CapabilityError> = std::result::Result<T, E>;

/// An error with its causes: the message of an HTTP client's own error ends at "error sending request".
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// How a capability call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CapabilityError {
    pub code: &'static str,
    pub message: String,
}

impl CapabilityError {
    /// An error with one of the documented codes.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn not_allowed(message: impl Into<String>) -> Self {
        Self::new("NOT_ALLOWED", message)
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("INVALID_ARGUMENT", message)
    }

    pub fn not_configured(message: impl Into<String>) -> Self {
        Self::new("NOT_CONFIGURED", message)
    }

    /// Nothing was sent, so there are no side effects.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new("UNREACHABLE", message)
    }

    /// The request was sent but its response is missing or unusable, so side effects are possible.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new("TIMEOUT", message)
    }
}

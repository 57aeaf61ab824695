//! The request to a person to approve a call. Its token is for the user's client alone.

use serde::Serialize;
use serde_json::Value;

/// A confirmation request. Its serialization is for people, models and handlers, and has no token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfirmationRequest {
    pub confirmation_id: String,
    pub tool: String,
    /// The arguments as they would run; those marked `writeOnly` are redacted.
    pub args: Value,
    pub preview: String,
    /// In milliseconds since 1970.
    pub expires_at: i64,
    /// Absent when a handler has made the call: only the user's client may answer.
    #[serde(skip)]
    pub token: Option<ConfirmationToken>,
}

/// Proves that its holder is the client that the request was sent to. It is not `Serialize`, so no derived
/// serialization can contain it, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfirmationToken(String);

impl ConfirmationToken {
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The text of the token, for the client or for checking an answer.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for ConfirmationToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ConfirmationToken(…)")
    }
}

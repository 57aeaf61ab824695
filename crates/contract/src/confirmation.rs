//! The question to a person whether a call may run. Its token is for the user's client alone.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// What people, models and handlers may read of the question. Its serialization has no token.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfirmationRequest {
    pub confirmation_id: String,
    pub tool: String,
    /// The arguments as they would run; those marked `writeOnly` are redacted.
    pub args: Value,
    pub preview: String,
    /// In milliseconds since 1970.
    pub expires_at: i64,
    /// Absent when a handler has made the call: only the user's client may answer.
    pub token: Option<ConfirmationToken>,
}

/// Proves that its holder is the client that the question was sent to. It is not `Serialize`, so no derived
/// serialization can contain it, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfirmationToken(String);

/// The members of a confirmation request, with its token for the client.
#[derive(Serialize)]
pub(crate) struct RequestForm<'a> {
    confirmation_id: &'a str,
    tool: &'a str,
    args: &'a Value,
    preview: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation_token: Option<&'a str>,
    expires_at: i64,
}

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

impl ConfirmationRequest {
    pub(crate) fn form(&self) -> RequestForm<'_> {
        let Self { confirmation_id, tool, args, preview, expires_at, token: _ } = self;
        RequestForm {
            confirmation_id,
            tool,
            args,
            preview,
            confirmation_token: None,
            expires_at: *expires_at,
        }
    }

    pub(crate) fn form_for_client(&self) -> RequestForm<'_> {
        RequestForm { confirmation_token: self.token.as_ref().map(ConfirmationToken::reveal), ..self.form() }
    }
}

impl Serialize for ConfirmationRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.form().serialize(serializer)
    }
}

//! The request to a person to approve a call. Its token is for the user's client alone.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// What people, models and handlers may read of it. Its serialization has no token.
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

/// Proves that its holder is the client that the request was sent to. It is not `Serialize`, so no derived
/// serialization can contain it, and `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfirmationToken(String);

/// The members of a confirmation request, with its token for the client.
#[derive(Serialize)]
pub(crate) struct RequestJson<'a> {
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
    pub(crate) fn json(&self) -> RequestJson<'_> {
        let Self { confirmation_id, tool, args, preview, expires_at, token: _ } = self;
        RequestJson {
            confirmation_id,
            tool,
            args,
            preview,
            confirmation_token: None,
            expires_at: *expires_at,
        }
    }

    pub(crate) fn json_for_client(&self) -> RequestJson<'_> {
        RequestJson { confirmation_token: self.token.as_ref().map(ConfirmationToken::reveal), ..self.json() }
    }
}

impl Serialize for ConfirmationRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

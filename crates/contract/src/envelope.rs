//! The envelope (v1.0.0): the result of a call, always in the same form.

use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::ErrorKind;
use crate::confirmation::ConfirmationRequest;
use crate::json::write_serialized;

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub outcome: Result<Success, Failure>,
    pub meta: Meta,
}

/// The result of a handler that succeeded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Success {
    /// Shared with the record of the call, and with a tool that always returns the same data.
    pub data: Arc<Value>,
    /// The state changes that it requests, in order. The orchestrator decides on them.
    pub intents: Vec<Value>,
}

/// Why a call failed, for the model to correct it.
///
/// Its serialization is for models and handlers; [`Envelope::write`] and [`ClientEnvelope`] are for clients.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    #[serde(rename = "type")]
    pub kind: ErrorKind,
    pub message: String,
    pub retryable: bool,
    pub partial_side_effects: bool,
    pub idempotency_required: Option<bool>,
    pub details: Option<Box<Value>>,
    /// The confirmation request that has to be answered first. Serialized as `details.confirmation_request`.
    #[serde(skip)]
    pub confirmation: Option<Box<ConfirmationRequest>>,
    pub suggestion: Option<String>,
}

/// An envelope as the user's client receives it: with the token of a confirmation request.
#[derive(Debug, Clone, Copy)]
pub struct ClientEnvelope<'a>(pub &'a Envelope);

/// About the call: tool, versions, duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    pub tool: String,
    pub tool_version: Option<String>,
    pub registry_version: String,
    /// In milliseconds.
    pub duration: u64,
    pub execution_id: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl From<Value> for Success {
    fn from(data: Value) -> Self {
        Self { data: Arc::new(data), intents: Vec::new() }
    }
}

impl Failure {
    /// A failure without side effects.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retryable: false,
            partial_side_effects: false,
            idempotency_required: None,
            details: None,
            confirmation: None,
            suggestion: None,
        }
    }

    /// An unexpected failure of a running handler, which may have had side effects.
    pub fn unforeseen(message: impl Into<String>) -> Self {
        Self { partial_side_effects: true, ..Self::new(ErrorKind::Internal, message) }
    }

    /// Adds what the model can do next.
    #[must_use]
    /// The message, followed by the suggestion as a sentence of its own.
    pub fn text(&self) -> String {
        join_sentences([Some(self.message.as_str()), self.suggestion.as_deref()].into_iter().flatten())
    }

    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// Adds the time after which the call may succeed, in milliseconds, to the details.
    #[must_use]
    pub fn retry_after(mut self, milliseconds: u64) -> Self {
        let details = self.details.get_or_insert_with(|| Box::new(Value::Object(Map::new())));
        if let Value::Object(members) = &mut **details {
            members.insert("retryAfterMs".to_owned(), milliseconds.into());
        }
        self
    }

    /// The details as a model may read them.
    pub fn details(&self) -> Option<Value> {
        match (&self.confirmation, &self.details) {
            (Some(confirmation), _) => Some(json!({ "confirmation_request": confirmation })),
            (None, details) => details.as_deref().cloned(),
        }
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &self.kind)?;
        map.serialize_entry("message", &self.message)?;
        map.serialize_entry("retryable", &self.retryable)?;
        map.serialize_entry("partialSideEffects", &self.partial_side_effects)?;
        if let Some(required) = self.idempotency_required {
            map.serialize_entry("idempotencyRequired", &required)?;
        }
        if let Some(details) = self.details() {
            map.serialize_entry("details", &details)?;
        }
        if let Some(suggestion) = &self.suggestion {
            map.serialize_entry("suggestion", suggestion)?;
        }
        map.end()
    }
}

impl Envelope {
    /// True when the call succeeded.
    pub const fn is_ok(&self) -> bool {
        self.outcome.is_ok()
    }

    /// Appends its JSON for the client: that of [`ClientEnvelope`].
    pub fn write(&self, out: &mut Vec<u8>) {
        write_serialized(&ClientEnvelope(self), out);
    }
}

/// For models and handlers: without the token of a confirmation request.
impl Serialize for Envelope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("ok", &self.outcome.is_ok())?;
        match &self.outcome {
            Ok(success) => {
                map.serialize_entry("data", &*success.data)?;
                map.serialize_entry("intents", &success.intents)?;
            }
            Err(failure) => map.serialize_entry("error", failure)?,
        }
        map.serialize_entry("meta", &self.meta)?;
        map.end()
    }
}

impl Serialize for ClientEnvelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0.outcome.as_ref().err().and_then(|failure| failure.confirmation.as_deref());
        let Some(token) = request.and_then(|request| request.token.as_ref()) else {
            return self.0.serialize(serializer);
        };
        let mut value = serde_json::to_value(self.0).map_err(S::Error::custom)?;
        if let Some(Value::Object(request)) = value.pointer_mut("/error/details/confirmation_request") {
            request.shift_insert(request.len() - 1, "confirmation_token".to_owned(), token.reveal().into());
        }
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct EnvelopeJson {
            ok: bool,
            #[serde(default)]
            data: Value,
            #[serde(default)]
            intents: Vec<Value>,
            error: Option<Failure>,
            meta: Meta,
        }
        let EnvelopeJson { ok, data, intents, error, meta } = EnvelopeJson::deserialize(deserializer)?;
        let outcome = match (ok, error) {
            (true, None) => Ok(Success { data: Arc::new(data), intents }),
            (false, Some(failure)) => Err(failure),
            _ => return Err(D::Error::custom("`ok` and `error` contradict each other")),
        };
        Ok(Self { outcome, meta })
    }
}

/// Texts one after the other. A text that another one follows ends as a sentence does.
pub fn join_sentences<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for text in texts {
        if !joined.is_empty() {
            let is_ended = joined.ends_with(['.', '!', '?', '…', ':', ';']);
            joined.push_str(if is_ended { " " } else { ". " });
        }
        joined.push_str(text.trim());
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConfirmationToken;

    fn meta() -> Meta {
        Meta {
            tool: "echo".to_owned(),
            tool_version: Some("1.0.0".to_owned()),
            registry_version: "1.0.abcdef12".to_owned(),
            duration: 3,
            execution_id: "call_1".to_owned(),
            more: Map::new(),
        }
    }

    #[test]
    fn a_suggestion_follows_its_message_as_a_sentence() {
        let failure =
            |message: &str| Failure::new(ErrorKind::Permanent, message).suggest("Do not repeat it.").text();
        assert_eq!(
            failure("The user declined this call: too late"),
            "The user declined this call: too late. Do not repeat it."
        );
        assert_eq!(failure("It is late."), "It is late. Do not repeat it.");
        assert_eq!(Failure::new(ErrorKind::Permanent, "too late").text(), "too late");
    }

    #[test]
    fn success_and_failure_have_the_documented_form() {
        let meta_json = json!({"tool": "echo", "toolVersion": "1.0.0", "registryVersion": "1.0.abcdef12",
            "duration": 3, "executionId": "call_1"});
        let success = Envelope {
            outcome: Ok(Success { data: Arc::new(json!({"a": 1})), intents: vec![] }),
            meta: meta(),
        };
        assert_eq!(
            serde_json::to_value(&success).unwrap(),
            json!({"ok": true, "data": {"a": 1}, "intents": [], "meta": meta_json})
        );
        let failure = Failure::new(ErrorKind::Validation, "no").suggest("fix it");
        let failure = Envelope { outcome: Err(failure), meta: meta() };
        let mut replayed = failure.clone();
        replayed.meta.tool_version = None;
        replayed.meta.more =
            Map::from_iter([("replayed".to_owned(), true.into()), ("x\"".to_owned(), json!([1]))]);
        for envelope in [&success, &failure, &replayed] {
            let text = serde_json::to_string(envelope).unwrap();
            assert_eq!(serde_json::from_str::<Envelope>(&text).unwrap(), *envelope);
            let mut written = Vec::new();
            envelope.write(&mut written);
            assert_eq!(String::from_utf8(written).unwrap(), text);
        }
        assert!(serde_json::from_value::<Envelope>(json!({"ok": true, "error": null})).is_err());
        assert_eq!(
            serde_json::to_value(&failure).unwrap(),
            json!({"ok": false, "error": {"type": "VALIDATION", "message": "no", "retryable": false,
                "partialSideEffects": false, "suggestion": "fix it"}, "meta": meta_json})
        );
    }

    #[test]
    fn only_the_client_reads_the_token_of_a_confirmation_request() {
        let request = ConfirmationRequest {
            confirmation_id: "conf_1".to_owned(),
            tool: "pay".to_owned(),
            args: json!({ "amount": 5 }),
            preview: "Pay 5".to_owned(),
            expires_at: 9,
            token: Some(ConfirmationToken::new("conf_1.secret")),
        };
        let mut failure = Failure::new(ErrorKind::ConfirmationRequired, "no");
        failure.confirmation = Some(Box::new(request));
        let public = json!({ "confirmation_request": { "confirmation_id": "conf_1", "tool": "pay",
            "args": { "amount": 5 }, "preview": "Pay 5", "expires_at": 9 } });
        assert_eq!(failure.details(), Some(public.clone()));
        assert!(!format!("{failure:?}").contains("secret"));
        let envelope = Envelope { outcome: Err(failure), meta: meta() };
        assert_eq!(serde_json::to_value(&envelope).unwrap()["error"]["details"], public);
        let mut written = Vec::new();
        envelope.write(&mut written);
        let text = String::from_utf8(written).unwrap();
        let expected = r#""details":{"confirmation_request":{"confirmation_id":"conf_1","tool":"pay","args":{"amount":5},"preview":"Pay 5","confirmation_token":"conf_1.secret","expires_at":9}}"#;
        assert!(text.contains(expected), "{text}");
    }
}

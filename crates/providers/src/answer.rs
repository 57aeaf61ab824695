//! What a model is told about a call, before a provider's form is given to it.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolwright_contract::Envelope;

use crate::Call;

/// The answer to one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<'a> {
    pub id: Option<&'a str>,
    pub name: &'a str,
    /// `{ok: true, data}` or `{ok: false, …}`.
    content: Cow<'a, Value>,
}

impl<'a> Answer<'a> {
    /// What the orchestrator has made for the model: an object with a boolean `ok`.
    pub fn told(call: &'a Call, content: &'a Value) -> Self {
        Self { id: call.id.as_deref(), name: &call.name, content: Cow::Borrowed(content) }
    }

    /// An envelope, without `meta` and intents, which are not the model's. A failure serializes without the token of a
    /// confirmation request.
    pub fn of(call: &'a Call, envelope: &Envelope) -> Self {
        let content = match &envelope.outcome {
            Ok(success) => json!({ "ok": true, "data": &*success.data }),
            Err(failure) => json!({ "ok": false, "error": failure }),
        };
        Self { id: call.id.as_deref(), name: &call.name, content: Cow::Owned(content) }
    }

    /// Whether the call failed. Whatever does not say that it succeeded did not.
    pub(crate) fn is_error(&self) -> bool {
        self.content.get("ok") != Some(&Value::Bool(true))
    }

    /// The whole answer as text, for providers that take nothing else.
    pub(crate) fn text(&self) -> String {
        self.content.to_string()
    }

    /// What the call gave.
    pub(crate) fn data(&self) -> Value {
        self.content.get("data").cloned().unwrap_or_default()
    }

    /// What went wrong: all that there is beside `ok`, or only the error if nothing else is there.
    pub(crate) fn error(&self) -> Value {
        match &*self.content {
            Value::Object(members) => {
                let mut members = members.clone();
                members.shift_remove("ok");
                match (members.len(), members.get("error")) {
                    (1, Some(error)) => error.clone(),
                    _ => Value::Object(members),
                }
            }
            other => other.clone(),
        }
    }
}

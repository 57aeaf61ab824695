//! The result of a call as a model sees it, before it has a provider's form.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolwright_contract::{Envelope, ToolSpec};

use crate::Call;
use crate::mcp::OutputForm;

/// The result of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    pub id: Option<&'a str>,
    pub name: &'a str,
    /// `{ok: true, data}` or `{ok: false, …}`.
    content: Cow<'a, Value>,
    /// What MCP declares for the results of the tool.
    pub(crate) output: OutputForm,
}

/// Without the tool's declaration a failure has no structured content: the declared output may not admit it.
const UNKNOWN_OUTPUT: OutputForm = OutputForm { is_wrapped: false, has_schema: true };

impl<'a> ToolResult<'a> {
    /// From the orchestrator's value for the model: an object with a boolean `ok`.
    pub fn from_model_value(call: &'a Call, content: &'a Value) -> Self {
        let content = Cow::Borrowed(content);
        Self { id: call.id.as_deref(), name: &call.name, content, output: UNKNOWN_OUTPUT }
    }

    /// Names the called tool: MCP writes results as it declares the tool's output.
    #[must_use]
    pub fn of_tool(self, spec: &ToolSpec) -> Self {
        Self { output: OutputForm::of_tool(spec), ..self }
    }

    /// From an envelope, without `meta` and intents. A failure serializes without the token of a confirmation request.
    pub fn from_envelope(call: &'a Call, envelope: &Envelope) -> Self {
        let content = match &envelope.outcome {
            Ok(success) => json!({ "ok": true, "data": &*success.data }),
            Err(failure) => json!({ "ok": false, "error": failure }),
        };
        let content = Cow::Owned(content);
        Self { id: call.id.as_deref(), name: &call.name, content, output: UNKNOWN_OUTPUT }
    }

    /// Whether the call failed. Content without `ok: true` is a failure.
    pub(crate) fn is_error(&self) -> bool {
        self.content.get("ok") != Some(&Value::Bool(true))
    }

    /// The provider's id of the call; empty if it has none.
    pub(crate) fn call_id(&self) -> &'a str {
        self.id.unwrap_or_default()
    }

    /// The whole result as text, for providers that accept nothing else.
    pub(crate) fn text(&self) -> String {
        self.content.to_string()
    }

    /// The data of a success, or the whole content of a failure.
    pub(crate) fn outcome(&self) -> Result<&Value, Cow<'_, Value>> {
        match self.is_error() {
            true => Err(Cow::Borrowed(&self.content)),
            false => Ok(self.content.get("data").unwrap_or(&Value::Null)),
        }
    }

    /// The data of a success.
    pub(crate) fn data(&self) -> Value {
        self.content.get("data").cloned().unwrap_or_default()
    }

    /// The error of a failure: everything except `ok`, or `error` alone if there is nothing else.
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

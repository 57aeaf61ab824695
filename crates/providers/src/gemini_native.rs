//! Gemini's own schema language (`OBJECT`, `STRING` …), and the Live API, which reliably accepts nothing else.

use serde_json::{Value, json};

use crate::ToolResult;
use crate::call::Call;
use crate::frames::Framing;
use crate::gemini::{PROVIDER as GEMINI, accepts_name, function_call, function_response, wrap};
use crate::lower::GEMINI_NATIVE;
use crate::provider::{Declaration, Provider};

pub(crate) const PROVIDER: Provider = Provider {
    name: "gemini-native",
    title: "Gemini native and Live",
    max_tools: None,
    framing: Framing::Messages,
    accepts_name,
    dialect: &GEMINI_NATIVE,
    declare,
    wrap,
    read,
    read_event: |calls, event| calls.complete.extend(read(event)),
    write,
};

fn declare(tool: Declaration<'_>) -> Value {
    // The service rejects an OBJECT without properties: a tool without arguments has no `parameters`.
    let is_called_with_nothing = !tool.parameters.contains_key("properties");
    let mut declaration = tool.into_object("parameters");
    if is_called_with_nothing && let Some(members) = declaration.as_object_mut() {
        members.shift_remove("parameters");
    }
    declaration
}

/// Reads a message of the Live API, or a response of generateContent.
fn read(message: &Value) -> Vec<Call> {
    match message.pointer("/toolCall/functionCalls").and_then(Value::as_array) {
        Some(calls) => calls.iter().map(function_call).collect(),
        None => (GEMINI.read)(message),
    }
}

/// A message of the Live API. The model continues only when every call has a result.
fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    if results.is_empty() {
        return Vec::new();
    }
    let responses: Vec<Value> = results.iter().map(function_response).collect();
    vec![json!({ "toolResponse": { "functionResponses": responses } })]
}

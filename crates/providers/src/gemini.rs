//! Gemini's generateContent, with tools declared by `parametersJsonSchema`.

use serde_json::{Value, json};

use crate::ToolResult;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::GEMINI;
use crate::provider::{Provider, is_name, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "gemini",
    title: "Gemini",
    max_tools: None,
    framing: Framing::Sse,
    accepts_name,
    dialect: &GEMINI,
    declare: |tool| tool.into_object("parametersJsonSchema"),
    wrap,
    read,
    read_event: |calls, event| calls.complete.extend(read(event)),
    write,
};

/// The documentation states 128 characters; the service accepts 64.
pub(crate) fn accepts_name(name: &str) -> bool {
    is_name(name, 64, "_.:-") && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

pub(crate) fn wrap(declarations: Vec<Value>) -> Value {
    Value::Array(vec![object([("functionDeclarations", declarations.into())])])
}

/// Reads a response of `:generateContent`, an element of `:streamGenerateContent`, or the array of all of them.
fn read(response: &Value) -> Vec<Call> {
    if let Some(responses) = response.as_array() {
        return responses.iter().filter(|response| !response.is_array()).flat_map(read).collect();
    }
    let content = response.pointer("/candidates/0/content").unwrap_or(response);
    let parts = content.get("parts").and_then(Value::as_array);
    parts.into_iter().flatten().filter_map(|part| part.get("functionCall")).map(function_call).collect()
}

/// Reads a `functionCall`, which Live has too.
pub(crate) fn function_call(call: &Value) -> Call {
    Call::new(call.get("id"), call.get("name"), call.get("args"))
}

fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    let part = |result: &ToolResult<'_>| json!({ "functionResponse": function_response(result) });
    let parts: Vec<Value> = results.iter().map(part).collect();
    if parts.is_empty() { Vec::new() } else { vec![json!({ "role": "user", "parts": parts })] }
}

/// A `functionResponse`: the documented keys are `output` and `error`.
pub(crate) fn function_response(result: &ToolResult<'_>) -> Value {
    let content = if result.is_error() { ("error", result.error()) } else { ("output", result.data()) };
    let id = result.id.map(|id| ("id", id.into()));
    object(id.into_iter().chain([("name", result.name.into()), ("response", object([content]))]))
}

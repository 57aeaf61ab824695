//! Ollama's own chat API. Its server reads a few keywords of JSON Schema and silently ignores the others.

use serde_json::Value;

use crate::ToolResult;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::OLLAMA;
use crate::openai_chat::tool_calls;
use crate::provider::{Declaration, Provider, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "ollama",
    title: "Ollama",
    max_tools: None,
    framing: Framing::Lines,
    accepts_name: |name| !name.is_empty(),
    dialect: &OLLAMA,
    declare,
    wrap: Value::Array,
    read,
    read_event: |calls, event| calls.complete.extend(read(event)),
    write,
};

fn declare(tool: Declaration<'_>) -> Value {
    object([("type", "function".into()), ("function", tool.into_object("parameters"))])
}

fn read(response: &Value) -> Vec<Call> {
    tool_calls(response.get("message").unwrap_or(response))
}

fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    let message = |result: &ToolResult<'_>| {
        let id = result.id.map(|id| ("tool_call_id", id.into()));
        let members = [("role", "tool".into()), ("tool_name", result.name.into())].into_iter().chain(id);
        object(members.chain([("content", result.text().into())]))
    };
    results.iter().map(message).collect()
}

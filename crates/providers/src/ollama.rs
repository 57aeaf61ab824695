//! Ollama's own chat API. Its server reads a few keywords of JSON Schema and silently ignores the others.

use serde_json::{Map, Value};

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
    read_event: |calls, event| calls.add_complete(read(event)),
    write,
};

fn declare(tool: Declaration<'_>) -> Value {
    let function = object([
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("parameters", tool.parameters.into()),
    ]);
    object([("type", "function".into()), ("function", function)])
}

fn read(response: &Value) -> Vec<Call> {
    tool_calls(response.get("message").unwrap_or(response))
}

fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    let message = |result: &ToolResult<'_>| {
        let mut message = Map::new();
        message.insert("role".to_owned(), "tool".into());
        message.insert("tool_name".to_owned(), result.name.into());
        if let Some(id) = result.id {
            message.insert("tool_call_id".to_owned(), id.into());
        }
        message.insert("content".to_owned(), result.text().into());
        Value::Object(message)
    };
    results.iter().map(message).collect()
}

//! The Model Context Protocol: `tools/list` and `tools/call`. The frame of JSON-RPC around them is the transport's.

use serde_json::{Map, Value, json};
use toolwright_contract::{Execution, SideEffects, ToolSpec};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::{MCP, normal};
use crate::provider::{Declared, Provider, is_name, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "mcp",
    title: "Model Context Protocol",
    most_tools: None,
    framing: Framing::Lines,
    takes_name: |name| is_name(name, 128, "_.-"),
    policy: &MCP,
    declare,
    wrap: |tools| object([("tools", tools.into())]),
    read,
    take,
    write,
};

fn declare(tool: Declared<'_>) -> Value {
    let mut declaration = Map::new();
    declaration.insert("name".to_owned(), tool.spec.tool_id.as_str().into());
    declaration.insert("description".to_owned(), tool.description.into());
    declaration.insert("inputSchema".to_owned(), tool.parameters.into());
    if let Some(output) = output(tool.spec) {
        declaration.insert("outputSchema".to_owned(), output);
    }
    declaration.insert("annotations".to_owned(), hints(tool.spec));
    Value::Object(declaration)
}

/// A client holds every result against it, so it is there only when every result has that form.
fn output(spec: &ToolSpec) -> Option<Value> {
    let is_at_once = spec.execution != Some(Execution::Background);
    let output = spec.output.as_ref().filter(|output| is_at_once && output["type"] == "object")?;
    Some(Value::Object(normal(output)))
}

fn hints(spec: &ToolSpec) -> Value {
    let writes = spec.side_effects == SideEffects::Writes;
    json!({
        "readOnlyHint": !writes, "destructiveHint": writes, "idempotentHint": spec.idempotent,
        "openWorldHint": spec.side_effects != SideEffects::None,
    })
}

fn read(request: &Value) -> Vec<Call> {
    if request.get("method").is_none_or(|method| method != "tools/call") {
        return Vec::new();
    }
    let params = request.get("params").unwrap_or(&Value::Null);
    vec![Call::new(request.get("id"), params.get("name"), params.get("arguments"))]
}

fn take(pieces: &mut Pieces, event: &Value) {
    read(event).into_iter().for_each(|call| pieces.whole(call));
}

/// The `result` of each call.
fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    answers.iter().map(result).collect()
}

fn result(answer: &Answer<'_>) -> Value {
    let mut result = Map::new();
    let text = if answer.is_error() { answer.text() } else { plain(&answer.data()) };
    result.insert("content".to_owned(), json!([{ "type": "text", "text": text }]));
    if !answer.is_error()
        && let data @ Value::Object(_) = answer.data()
    {
        result.insert("structuredContent".to_owned(), data);
    }
    result.insert("isError".to_owned(), answer.is_error().into());
    Value::Object(result)
}

/// Text is not quoted once more.
fn plain(data: &Value) -> String {
    data.as_str().map_or_else(|| data.to_string(), str::to_owned)
}

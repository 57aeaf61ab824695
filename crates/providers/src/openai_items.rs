//! Shared by OpenAI's APIs: the names that they accept, and the `function_call` items of Responses and Realtime.

use serde_json::{Value, json};

use crate::ToolResult;
use crate::assembler::StreamedCalls;
use crate::call::{Call, text};
use crate::provider::{Declaration, is_name, object};

/// How many tools one request can declare.
pub(crate) const MAX_TOOLS: usize = 128;

/// Whether a tool can have this name.
pub(crate) fn accepts_name(name: &str) -> bool {
    is_name(name, 64, "_-")
}

/// A tool as Responses and Realtime declare it.
pub(crate) fn declare(tool: Declaration<'_>) -> Value {
    object([
        ("type", "function".into()),
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("parameters", tool.parameters.into()),
    ])
}

/// The calls of a response's `output`.
pub(crate) fn calls(response: &Value) -> Vec<Call> {
    call_items(response).map(call).collect()
}

/// The `function_call` items of a response's `output`.
fn call_items(response: &Value) -> impl Iterator<Item = &Value> {
    response.get("output").and_then(Value::as_array).into_iter().flatten().filter(|item| is_call(item))
}

/// Whether an item is a call of one of our tools.
pub(crate) fn is_call(item: &Value) -> bool {
    item.get("type").is_some_and(|kind| kind == "function_call")
}

/// Whether the model was stopped while it wrote this item.
pub(crate) fn is_incomplete(item: &Value) -> bool {
    item.get("status").is_some_and(|status| status == "incomplete")
}

fn call(item: &Value) -> Call {
    let call = Call::new(item.get("call_id"), item.get("name"), item.get("arguments"));
    if is_incomplete(item) {
        return Call::truncated(call.id, call.name, text(item.get("arguments")).unwrap_or_default());
    }
    call
}

/// The key of a streamed call. Deltas of Responses have only the item's id.
fn key(item: &Value) -> &str {
    let field = |name: &str| item.get(name).and_then(Value::as_str);
    field("id").or_else(|| field("call_id")).unwrap_or_default()
}

/// Adds the call of a complete item.
pub(crate) fn add_item(calls: &mut StreamedCalls, item: &Value) {
    calls.add_complete_once(key(item), call(item));
}

/// Adds the calls of a complete response, and discards those that it does not have.
pub(crate) fn end_response(calls: &mut StreamedCalls, response: Option<&Value>) {
    response.into_iter().flat_map(call_items).for_each(|item| add_item(calls, item));
    calls.discard_open();
}

/// Reads the events of an item before it is complete.
pub(crate) fn read_delta(calls: &mut StreamedCalls, event: &Value, kind: &str) {
    let item = event.get("item").unwrap_or(&Value::Null);
    match kind {
        "response.output_item.added" if is_call(item) => {
            calls.begin(key(item), text(item.get("call_id")), text(item.get("name")));
        }
        "response.function_call_arguments.delta" => {
            let id = event.get("item_id").or_else(|| event.get("call_id")).and_then(Value::as_str);
            let delta = event.get("delta").and_then(Value::as_str);
            calls.append(id.unwrap_or_default(), delta.unwrap_or_default());
        }
        _ => {}
    }
}

/// A result as an item.
pub(crate) fn result_item(result: &ToolResult<'_>) -> Value {
    json!({ "type": "function_call_output", "call_id": result.call_id(), "output": result.text() })
}

//! `function_call` items, which OpenAI's Responses and Realtime share.

use serde_json::{Value, json};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::{Call, text};

/// The calls of a response's `output`.
pub(crate) fn calls(response: &Value) -> Vec<Call> {
    output(response).map(call).collect()
}

/// The `function_call` items of a response's `output`.
pub(crate) fn output(response: &Value) -> impl Iterator<Item = &Value> {
    response.get("output").and_then(Value::as_array).into_iter().flatten().filter(|item| is_call(item))
}

/// Whether an item is a call of a tool of ours.
pub(crate) fn is_call(item: &Value) -> bool {
    item.get("type").is_some_and(|kind| kind == "function_call")
}

/// Whether the model was stopped while it wrote this item.
pub(crate) fn is_incomplete(item: &Value) -> bool {
    item.get("status").is_some_and(|status| status == "incomplete")
}

/// An item as a call.
pub(crate) fn call(item: &Value) -> Call {
    let mut call = Call::new(item.get("call_id"), item.get("name"), item.get("arguments"));
    if is_incomplete(item) {
        call = Call::truncated(call.id, call.name, text(item.get("arguments")).unwrap_or_default());
    }
    call
}

/// The key of an item's pieces. Deltas of Responses name the item alone.
pub(crate) fn key(item: &Value) -> &str {
    let name = |field: &str| item.get(field).and_then(Value::as_str);
    name("id").or_else(|| name("call_id")).unwrap_or_default()
}

/// The events before an item is done.
pub(crate) fn take_pieces(pieces: &mut Pieces, event: &Value, kind: &str) {
    let item = event.get("item").unwrap_or(&Value::Null);
    match kind {
        "response.output_item.added" if is_call(item) => {
            pieces.begin(key(item), text(item.get("call_id")), text(item.get("name")));
        }
        "response.function_call_arguments.delta" => {
            let id = event.get("item_id").or_else(|| event.get("call_id")).and_then(Value::as_str);
            let delta = event.get("delta").and_then(Value::as_str);
            pieces.append(id.unwrap_or_default(), delta.unwrap_or_default());
        }
        _ => {}
    }
}

/// An answer as an item.
pub(crate) fn result(answer: &Answer<'_>) -> Value {
    json!({ "type": "function_call_output", "call_id": answer.id.unwrap_or_default(), "output": answer.text() })
}

//! OpenAI Realtime, for voice.

use serde_json::{Value, json};

use crate::ToolResult;
use crate::assembler::StreamedCalls;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::OPENAI;
use crate::openai_items::{self as items, MAX_TOOLS, accepts_name};
use crate::provider::Provider;

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-realtime",
    title: "OpenAI Realtime",
    max_tools: Some(MAX_TOOLS),
    framing: Framing::Messages,
    accepts_name,
    dialect: &OPENAI,
    // Without `strict`: Realtime rejects unknown keys.
    declare: items::declare,
    wrap: Value::Array,
    read,
    read_event,
    write,
};

fn read(event: &Value) -> Vec<Call> {
    let response = event.get("response").unwrap_or(event);
    if is_interrupted(response) { Vec::new() } else { items::calls(response) }
}

/// The user interrupted the response, or it failed: its calls must not run.
fn is_interrupted(response: &Value) -> bool {
    response.get("status").is_some_and(|status| status == "cancelled" || status == "failed")
}

fn read_event(calls: &mut StreamedCalls, event: &Value) {
    let Some(kind) = event.get("type").and_then(Value::as_str) else { return };
    match kind {
        // The item of an interrupted response is done and incomplete.
        "response.output_item.done" => {
            let is_complete = |item: &&Value| items::is_call(item) && !items::is_incomplete(item);
            if let Some(item) = event.get("item").filter(is_complete) {
                items::add_item(calls, item);
            }
        }
        "response.done" => {
            let response = event.get("response").filter(|response| !is_interrupted(response));
            items::end_response(calls, response);
        }
        _ => items::read_delta(calls, event, kind),
    }
}

/// The results, and the request for the next response: the model does not continue on its own.
fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    let create = |result: &ToolResult<'_>| json!({ "type": "conversation.item.create", "item": items::result_item(result) });
    let mut events: Vec<Value> = results.iter().map(create).collect();
    if !events.is_empty() {
        events.push(json!({ "type": "response.create" }));
    }
    events
}

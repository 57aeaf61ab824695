//! OpenAI Realtime, for voice.

use serde_json::{Value, json};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::Call;
use crate::frames::Framing;
use crate::items;
use crate::lower::OPENAI;
use crate::provider::{Declared, Provider, object, openai_name};

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-realtime",
    title: "OpenAI Realtime",
    most_tools: Some(128),
    framing: Framing::Messages,
    takes_name: openai_name,
    policy: &OPENAI,
    declare,
    wrap: Value::Array,
    read,
    take,
    write,
};

/// There is no `strict` here: an unknown key is refused.
fn declare(tool: Declared<'_>) -> Value {
    object([
        ("type", "function".into()),
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("parameters", tool.parameters.into()),
    ])
}

fn read(event: &Value) -> Vec<Call> {
    let response = event.get("response").unwrap_or(event);
    if is_interrupted(response) { Vec::new() } else { items::calls(response) }
}

/// A user who spoke in between, or a failure: what the model was about to call is not to be run.
fn is_interrupted(response: &Value) -> bool {
    response.get("status").is_some_and(|status| status == "cancelled" || status == "failed")
}

fn take(pieces: &mut Pieces, event: &Value) {
    let Some(kind) = event.get("type").and_then(Value::as_str) else { return };
    match kind {
        // An item that an interruption left incomplete is done too.
        "response.output_item.done" => {
            let is_whole = |item: &&Value| items::is_call(item) && !items::is_incomplete(item);
            if let Some(item) = event.get("item").filter(is_whole) {
                pieces.whole_once(items::key(item), items::call(item));
            }
        }
        "response.done" => {
            let response = event.get("response").filter(|response| !is_interrupted(response));
            for item in response.into_iter().flat_map(items::output) {
                pieces.whole_once(items::key(item), items::call(item));
            }
            pieces.forget();
        }
        _ => items::take_pieces(pieces, event, kind),
    }
}

/// The results, and the request to go on: without it the model stays silent.
fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    let create =
        |answer: &Answer<'_>| json!({ "type": "conversation.item.create", "item": items::result(answer) });
    let mut events: Vec<Value> = answers.iter().map(create).collect();
    if !events.is_empty() {
        events.push(json!({ "type": "response.create" }));
    }
    events
}

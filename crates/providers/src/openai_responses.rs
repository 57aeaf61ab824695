//! OpenAI Responses.

use serde_json::Value;

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::Call;
use crate::frames::Framing;
use crate::items;
use crate::lower::{OPENAI, strict};
use crate::provider::{Declared, Provider, object, openai_name};

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-responses",
    title: "OpenAI Responses",
    most_tools: Some(128),
    framing: Framing::Sse,
    takes_name: openai_name,
    policy: &OPENAI,
    declare,
    wrap: Value::Array,
    read,
    take,
    write,
};

fn declare(tool: Declared<'_>) -> Value {
    let mut parameters = tool.parameters;
    // Unlike in Chat, `strict` is a required key.
    let is_strict = strict::allows(&parameters);
    if is_strict {
        strict::complete(&mut parameters);
    }
    object([
        ("type", "function".into()),
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("parameters", parameters.into()),
        ("strict", is_strict.into()),
    ])
}

fn read(response: &Value) -> Vec<Call> {
    items::calls(response.get("response").unwrap_or(response))
}

fn take(pieces: &mut Pieces, event: &Value) {
    let Some(kind) = event.get("type").and_then(Value::as_str) else { return };
    match kind {
        "response.output_item.done" => {
            if let Some(item) = event.get("item").filter(|item| items::is_call(item)) {
                pieces.whole_once(items::key(item), items::call(item));
            }
        }
        "response.completed" | "response.incomplete" => {
            for item in event.get("response").into_iter().flat_map(items::output) {
                pieces.whole_once(items::key(item), items::call(item));
            }
            pieces.forget();
        }
        "response.failed" | "error" => pieces.forget(),
        _ => items::take_pieces(pieces, event, kind),
    }
}

fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    answers.iter().map(items::result).collect()
}

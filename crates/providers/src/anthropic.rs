//! Anthropic Messages.

use serde_json::{Map, Value, json};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::{Call, text};
use crate::frames::Framing;
use crate::lower::ANTHROPIC;
use crate::provider::{Declared, Provider, is_name, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "anthropic",
    title: "Anthropic Messages",
    most_tools: None,
    framing: Framing::Sse,
    takes_name: |name| is_name(name, 128, "_-"),
    policy: &ANTHROPIC,
    declare,
    wrap: Value::Array,
    read,
    take,
    write,
};

fn declare(tool: Declared<'_>) -> Value {
    object([
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("input_schema", tool.parameters.into()),
    ])
}

fn is_tool_use(block: &Value) -> bool {
    // Tools that run at the provider have other types.
    block.get("type").is_some_and(|kind| kind == "tool_use")
}

fn read(message: &Value) -> Vec<Call> {
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let call = |block: &Value| Call::new(block.get("id"), block.get("name"), block.get("input"));
    blocks.filter(|block| is_tool_use(block)).map(call).collect()
}

fn take(pieces: &mut Pieces, event: &Value) {
    let index = || event.get("index").map(Value::to_string).unwrap_or_default();
    match event.get("type").and_then(Value::as_str) {
        Some("content_block_start") => {
            let Some(block) = event.get("content_block").filter(|block| is_tool_use(block)) else { return };
            pieces.begin(&index(), text(block.get("id")), text(block.get("name")));
            // Usually empty, and the pieces follow.
            if let Some(input) =
                block.get("input").and_then(Value::as_object).filter(|input| !input.is_empty())
            {
                pieces.append(&index(), &Value::Object(input.clone()).to_string());
            }
        }
        Some("content_block_delta") => {
            if let Some(piece) = event.pointer("/delta/partial_json").and_then(Value::as_str) {
                pieces.append(&index(), piece);
            }
        }
        // A block that ended without pieces has no arguments, or was cut off: only the stop reason tells.
        Some("message_delta") => {
            if let Some(reason) = event.pointer("/delta/stop_reason").filter(|reason| !reason.is_null()) {
                pieces.end_all(reason == "max_tokens" || reason == "model_context_window_exceeded");
            }
        }
        Some("message_stop") => pieces.end_all(false),
        Some("error") => pieces.forget(),
        _ => {}
    }
}

/// One user message for all calls of the turn.
fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    let block = |answer: &Answer<'_>| {
        let mut block = Map::new();
        block.insert("type".to_owned(), "tool_result".into());
        block.insert("tool_use_id".to_owned(), answer.id.unwrap_or_default().into());
        block.insert("content".to_owned(), answer.text().into());
        if answer.is_error() {
            block.insert("is_error".to_owned(), true.into());
        }
        Value::Object(block)
    };
    let blocks: Vec<Value> = answers.iter().map(block).collect();
    if blocks.is_empty() { Vec::new() } else { vec![json!({ "role": "user", "content": blocks })] }
}

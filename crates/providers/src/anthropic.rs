//! Anthropic Messages.

use serde_json::{Value, json};

use crate::ToolResult;
use crate::assembler::StreamedCalls;
use crate::call::{Call, text};
use crate::frames::Framing;
use crate::lower::ANTHROPIC;
use crate::provider::{Provider, is_name, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "anthropic",
    title: "Anthropic Messages",
    max_tools: None,
    framing: Framing::Sse,
    accepts_name: |name| is_name(name, 128, "_-"),
    dialect: &ANTHROPIC,
    declare: |tool| tool.into_object("input_schema"),
    wrap: Value::Array,
    read,
    read_event,
    write,
};

fn is_tool_use(block: &Value) -> bool {
    // Tools that the provider itself runs have other types.
    block.get("type").is_some_and(|kind| kind == "tool_use")
}

fn read(message: &Value) -> Vec<Call> {
    let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let call = |block: &Value| Call::new(block.get("id"), block.get("name"), block.get("input"));
    blocks.filter(|block| is_tool_use(block)).map(call).collect()
}

fn read_event(calls: &mut StreamedCalls, event: &Value) {
    let index = || event.get("index").map(Value::to_string).unwrap_or_default();
    match event.get("type").and_then(Value::as_str) {
        Some("content_block_start") => {
            let Some(block) = event.get("content_block").filter(|block| is_tool_use(block)) else { return };
            calls.begin(&index(), text(block.get("id")), text(block.get("name")));
            // Usually empty: the arguments follow as deltas.
            let is_given = |input: &&Value| input.as_object().is_some_and(|input| !input.is_empty());
            if let Some(input) = block.get("input").filter(is_given) {
                calls.append(&index(), &input.to_string());
            }
        }
        Some("content_block_delta") => {
            if let Some(delta) = event.pointer("/delta/partial_json").and_then(Value::as_str) {
                calls.append(&index(), delta);
            }
        }
        // A block without deltas has no arguments or was truncated: only the stop reason shows which.
        Some("message_delta") => {
            if let Some(reason) = event.pointer("/delta/stop_reason").filter(|reason| !reason.is_null()) {
                calls.end_all(reason == "max_tokens" || reason == "model_context_window_exceeded");
            }
        }
        Some("message_stop") => calls.end_all(false),
        Some("error") => calls.discard_open(),
        _ => {}
    }
}

/// One user message with the results of all calls.
fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    let block = |result: &ToolResult<'_>| {
        let (id, content) = (result.call_id().into(), result.text().into());
        let error = result.is_error().then(|| ("is_error", true.into()));
        let members = [("type", "tool_result".into()), ("tool_use_id", id), ("content", content)];
        object(members.into_iter().chain(error))
    };
    let blocks: Vec<Value> = results.iter().map(block).collect();
    if blocks.is_empty() { Vec::new() } else { vec![json!({ "role": "user", "content": blocks })] }
}

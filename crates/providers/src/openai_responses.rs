//! OpenAI Responses.

use serde_json::Value;

use crate::assembler::StreamedCalls;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::{OPENAI, strict};
use crate::openai_items::{self as items, MAX_TOOLS, accepts_name};
use crate::provider::{Declaration, Provider};

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-responses",
    title: "OpenAI Responses",
    max_tools: Some(MAX_TOOLS),
    framing: Framing::Sse,
    accepts_name,
    dialect: &OPENAI,
    declare,
    wrap: Value::Array,
    read,
    read_event,
    write: |results| results.iter().map(items::result_item).collect(),
};

fn declare(mut tool: Declaration<'_>) -> Value {
    // Unlike in Chat, `strict` is a required key.
    let is_strict = strict::enforce(&mut tool.parameters);
    let mut declaration = items::declare(tool);
    declaration["strict"] = is_strict.into();
    declaration
}

fn read(response: &Value) -> Vec<Call> {
    items::calls(response.get("response").unwrap_or(response))
}

fn read_event(calls: &mut StreamedCalls, event: &Value) {
    let Some(kind) = event.get("type").and_then(Value::as_str) else { return };
    match kind {
        "response.output_item.done" => {
            if let Some(item) = event.get("item").filter(|item| items::is_call(item)) {
                items::add_item(calls, item);
            }
        }
        "response.completed" | "response.incomplete" => items::end_response(calls, event.get("response")),
        "response.failed" | "error" => calls.discard_open(),
        _ => items::read_delta(calls, event, kind),
    }
}

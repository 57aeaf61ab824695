//! OpenAI Chat Completions, and the many servers with the same API.

use serde_json::{Value, json};

use crate::ToolResult;
use crate::assembler::StreamedCalls;
use crate::call::{Call, text};
use crate::frames::Framing;
use crate::lower::{OPENAI, strict};
use crate::openai_items::{MAX_TOOLS, accepts_name};
use crate::provider::{Declaration, Provider, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-chat",
    title: "OpenAI Chat Completions",
    max_tools: Some(MAX_TOOLS),
    framing: Framing::Sse,
    accepts_name,
    dialect: &OPENAI,
    declare,
    wrap: Value::Array,
    read,
    read_event,
    write,
};

fn declare(mut tool: Declaration<'_>) -> Value {
    let strict = strict::enforce(&mut tool.parameters).then(|| ("strict", true.into()));
    let name = ("name", tool.spec.tool_id.as_str().into());
    let members = [name, ("description", tool.description.into())].into_iter().chain(strict);
    let function = object(members.chain([("parameters", tool.parameters.into())]));
    object([("type", "function".into()), ("function", function)])
}

/// The first choice; the others are alternatives.
fn first_choice(response: &Value) -> Option<&Value> {
    let choices = response.get("choices")?.as_array()?;
    choices.iter().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

fn read(response: &Value) -> Vec<Call> {
    let message = first_choice(response).and_then(|choice| choice.get("message"));
    tool_calls(message.or_else(|| response.get("message")).unwrap_or(response))
}

/// The calls of a complete message. Ollama's messages have the same form.
pub(crate) fn tool_calls(message: &Value) -> Vec<Call> {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let call = |call: &Value| {
        let function = call.get("function")?;
        Some(Call::new(call.get("id"), function.get("name"), function.get("arguments")))
    };
    calls.filter_map(call).collect()
}

fn read_event(calls: &mut StreamedCalls, event: &Value) {
    if event == "[DONE]" {
        return calls.end_all(false);
    }
    let Some(choice) = first_choice(event) else { return };
    let deltas = choice.pointer("/delta/tool_calls").and_then(Value::as_array).into_iter().flatten();
    for delta in deltas {
        read_delta(calls, delta);
    }
    match choice.get("finish_reason") {
        None | Some(Value::Null) => {}
        Some(reason) => calls.end_all(reason == "length" || reason == "content_filter"),
    }
}

fn read_delta(calls: &mut StreamedCalls, delta: &Value) {
    let id = text(delta.get("id"));
    let key = match delta.get("index").and_then(Value::as_u64) {
        Some(index) => {
            let key = index.to_string();
            // Some servers give every call the index 0: another id is another call.
            if id.is_some() && calls.open_id(&key).is_some_and(|open| Some(open) != id.as_deref()) {
                calls.end(&key);
            }
            key
        }
        // Others leave the index out: a delta without an id belongs to the last call.
        None => match calls.last_open() {
            Some((key, open)) if id.is_none() || open == id.as_deref() => key.to_owned(),
            _ => format!("+{}", calls.open_count()),
        },
    };
    let function = delta.get("function").unwrap_or(&Value::Null);
    calls.begin(&key, id, text(function.get("name")));
    match function.get("arguments") {
        Some(Value::String(text)) => calls.append(&key, text),
        None | Some(Value::Null) => {}
        Some(arguments) => calls.append(&key, &arguments.to_string()),
    }
}

fn write(results: &[ToolResult<'_>]) -> Vec<Value> {
    let message = |result: &ToolResult<'_>| json!({ "role": "tool", "tool_call_id": result.call_id(), "content": result.text() });
    results.iter().map(message).collect()
}

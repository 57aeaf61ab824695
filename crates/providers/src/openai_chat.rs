//! OpenAI Chat Completions, and the many servers that speak it.

use serde_json::{Map, Value, json};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::{Call, text};
use crate::frames::Framing;
use crate::lower::{OPENAI, strict};
use crate::provider::{Declared, Provider, object, openai_name};

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai-chat",
    title: "OpenAI Chat Completions",
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
    let mut function = Map::new();
    function.insert("name".to_owned(), tool.spec.tool_id.as_str().into());
    function.insert("description".to_owned(), tool.description.into());
    let mut parameters = tool.parameters;
    if strict::allows(&parameters) {
        strict::complete(&mut parameters);
        function.insert("strict".to_owned(), true.into());
    }
    function.insert("parameters".to_owned(), parameters.into());
    object([("type", "function".into()), ("function", function.into())])
}

/// The first choice: others are alternatives to it.
fn first_choice(response: &Value) -> Option<&Value> {
    let choices = response.get("choices")?.as_array()?;
    choices.iter().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

fn read(response: &Value) -> Vec<Call> {
    let message = first_choice(response).and_then(|choice| choice.get("message"));
    tool_calls(message.or_else(|| response.get("message")).unwrap_or(response))
}

/// The calls of a message that has them whole. Ollama's messages have the same form.
pub(crate) fn tool_calls(message: &Value) -> Vec<Call> {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let call = |call: &Value| {
        let function = call.get("function")?;
        Some(Call::new(call.get("id"), function.get("name"), function.get("arguments")))
    };
    calls.filter_map(call).collect()
}

fn take(pieces: &mut Pieces, event: &Value) {
    if event == "[DONE]" {
        return pieces.end_all(false);
    }
    let Some(choice) = first_choice(event) else { return };
    let calls = choice.pointer("/delta/tool_calls").and_then(Value::as_array).into_iter().flatten();
    for piece in calls {
        take_piece(pieces, piece);
    }
    match choice.get("finish_reason") {
        None | Some(Value::Null) => {}
        Some(reason) => pieces.end_all(reason == "length" || reason == "content_filter"),
    }
}

fn take_piece(pieces: &mut Pieces, piece: &Value) {
    let id = text(piece.get("id"));
    let key = match piece.get("index").and_then(Value::as_u64) {
        Some(index) => {
            let key = index.to_string();
            // Some servers give every call the index 0: another id is another call.
            if id.is_some() && pieces.id(&key).is_some_and(|open| Some(open) != id.as_deref()) {
                pieces.end(&key);
            }
            key
        }
        // Others leave the index out: a piece without an id goes on with the last call.
        None => match pieces.last() {
            Some((key, open)) if id.is_none() || open == id.as_deref() => key.to_owned(),
            _ => format!("+{}", pieces.open_count()),
        },
    };
    let function = piece.get("function").unwrap_or(&Value::Null);
    pieces.begin(&key, id, text(function.get("name")));
    match function.get("arguments") {
        Some(Value::String(text)) => pieces.append(&key, text),
        None | Some(Value::Null) => {}
        Some(arguments) => pieces.append(&key, &arguments.to_string()),
    }
}

fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    let message = |answer: &Answer<'_>| json!({ "role": "tool", "tool_call_id": answer.id.unwrap_or_default(), "content": answer.text() });
    answers.iter().map(message).collect()
}

//! Gemini's generateContent, with tools declared by `parametersJsonSchema`.

use serde_json::{Map, Value, json};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::GEMINI;
use crate::provider::{Declared, Provider, is_name, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "gemini",
    title: "Gemini",
    most_tools: None,
    framing: Framing::Sse,
    takes_name,
    policy: &GEMINI,
    declare,
    wrap,
    read,
    take,
    write,
};

/// The documentation says 128 characters, the service 64.
pub(crate) fn takes_name(name: &str) -> bool {
    is_name(name, 64, "_.:-") && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn declare(tool: Declared<'_>) -> Value {
    object([
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("parametersJsonSchema", tool.parameters.into()),
    ])
}

pub(crate) fn wrap(declarations: Vec<Value>) -> Value {
    Value::Array(vec![object([("functionDeclarations", declarations.into())])])
}

/// Of `:generateContent`, of an element of `:streamGenerateContent`, or of the array of all of them.
fn read(response: &Value) -> Vec<Call> {
    if let Some(responses) = response.as_array() {
        return responses.iter().filter(|response| !response.is_array()).flat_map(read).collect();
    }
    let parts = response.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    parts.into_iter().flatten().filter_map(|part| part.get("functionCall")).map(function_call).collect()
}

/// A `functionCall`, which Live has too.
pub(crate) fn function_call(call: &Value) -> Call {
    Call::new(call.get("id"), call.get("name"), call.get("args"))
}

/// A call comes whole in one part.
fn take(pieces: &mut Pieces, event: &Value) {
    read(event).into_iter().for_each(|call| pieces.whole(call));
}

fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let part = |answer: &Answer<'_>| json!({ "functionResponse": function_response(answer) });
    vec![json!({ "role": "user", "parts": answers.iter().map(part).collect::<Vec<_>>() })]
}

/// A `functionResponse`: `output` and `error` are the keys that the model is told about.
pub(crate) fn function_response(answer: &Answer<'_>) -> Value {
    let mut response = Map::new();
    if let Some(id) = answer.id {
        response.insert("id".to_owned(), id.into());
    }
    response.insert("name".to_owned(), answer.name.into());
    let told = if answer.is_error() {
        json!({ "error": answer.error() })
    } else {
        json!({ "output": answer.data() })
    };
    response.insert("response".to_owned(), told);
    Value::Object(response)
}

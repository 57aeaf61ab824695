//! Gemini's own schema language (`OBJECT`, `STRING` …), and the Live API, which takes nothing else for sure.

use serde_json::{Map, Value, json};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::Call;
use crate::frames::Framing;
use crate::gemini::{PROVIDER as GEMINI, function_call, function_response, takes_name, wrap};
use crate::lower::GEMINI_NATIVE;
use crate::provider::{Declared, Provider};

pub(crate) const PROVIDER: Provider = Provider {
    name: "gemini-native",
    title: "Gemini native and Live",
    most_tools: None,
    framing: Framing::Messages,
    takes_name,
    policy: &GEMINI_NATIVE,
    declare,
    wrap,
    read,
    take,
    write,
};

fn declare(tool: Declared<'_>) -> Value {
    let mut declaration = Map::new();
    declaration.insert("name".to_owned(), tool.spec.tool_id.as_str().into());
    declaration.insert("description".to_owned(), tool.description.into());
    // An OBJECT without properties is refused: a tool without arguments has no parameters at all.
    if tool.parameters.contains_key("properties") {
        declaration.insert("parameters".to_owned(), tool.parameters.into());
    }
    Value::Object(declaration)
}

/// A message of the Live API; a response of generateContent is understood as well.
fn read(message: &Value) -> Vec<Call> {
    match message.pointer("/toolCall/functionCalls").and_then(Value::as_array) {
        Some(calls) => calls.iter().map(function_call).collect(),
        None => (GEMINI.read)(message),
    }
}

fn take(pieces: &mut Pieces, event: &Value) {
    read(event).into_iter().for_each(|call| pieces.whole(call));
}

/// A message of the Live API. Every call has to be answered, or the model stays silent.
fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let responses: Vec<Value> = answers.iter().map(function_response).collect();
    vec![json!({ "toolResponse": { "functionResponses": responses } })]
}

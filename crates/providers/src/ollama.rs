//! Ollama's own chat API. Its server reads a few keywords and forgets the others without a word.

use serde_json::{Map, Value};

use crate::Answer;
use crate::assemble::Pieces;
use crate::call::Call;
use crate::frames::Framing;
use crate::lower::OLLAMA;
use crate::openai_chat::tool_calls;
use crate::provider::{Declared, Provider, object};

pub(crate) const PROVIDER: Provider = Provider {
    name: "ollama",
    title: "Ollama",
    most_tools: None,
    framing: Framing::Lines,
    takes_name: |name| !name.is_empty(),
    policy: &OLLAMA,
    declare,
    wrap: Value::Array,
    read,
    take,
    write,
};

fn declare(tool: Declared<'_>) -> Value {
    let function = object([
        ("name", tool.spec.tool_id.as_str().into()),
        ("description", tool.description.into()),
        ("parameters", tool.parameters.into()),
    ]);
    object([("type", "function".into()), ("function", function)])
}

fn read(response: &Value) -> Vec<Call> {
    tool_calls(response.get("message").unwrap_or(response))
}

/// A call comes whole in one line.
fn take(pieces: &mut Pieces, event: &Value) {
    read(event).into_iter().for_each(|call| pieces.whole(call));
}

fn write(answers: &[Answer<'_>]) -> Vec<Value> {
    let message = |answer: &Answer<'_>| {
        let mut message = Map::new();
        message.insert("role".to_owned(), "tool".into());
        message.insert("tool_name".to_owned(), answer.name.into());
        if let Some(id) = answer.id {
            message.insert("tool_call_id".to_owned(), id.into());
        }
        message.insert("content".to_owned(), answer.text().into());
        Value::Object(message)
    };
    answers.iter().map(message).collect()
}

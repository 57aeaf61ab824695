//! Ollama's own chat API: one JSON value per line.

use serde_json::{Map, Value, json};

use super::request_parts::{Image, image, results, text_of, wire_args};
use super::{StepReader, Transport, bearer};
use crate::event::{FinishReason, InputPart, Usage, UserMessage};
use crate::message::{Message, Part, Step};
use crate::model::{ModelErrorKind, ModelRequest};

const NAME: &str = "ollama";

pub(super) const TRANSPORT: Transport = Transport {
    provider: NAME,
    base_url: "http://127.0.0.1:11434",
    key_env: None,
    default_model: None,
    path: |_| "/api/chat".to_owned(),
    headers: bearer,
    can_require_calls: false,
    body,
    read,
};

fn body(model: &str, request: &ModelRequest) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": &*request.system })];
    for message in &request.messages {
        match message {
            Message::User(user) => messages.push(user_message(user)),
            Message::Assistant(assistant) => {
                for step in &assistant.steps {
                    messages.extend(step_message(step));
                    messages.extend(results(NAME, step));
                }
            }
        }
    }
    let mut body = json!({ "model": model, "messages": messages, "stream": true });
    if !request.tools.is_empty() {
        body["tools"] = request.view.declarations.clone();
    }
    if let Some(limit) = request.max_output_tokens {
        body["options"] = json!({ "num_predict": limit });
    }
    body
}

/// Pictures are base64 without a media type; URLs of pictures are not supported.
fn user_message(user: &UserMessage) -> Value {
    let images = user.parts.iter().filter_map(|part| match part {
        InputPart::Image { url } => match image(url) {
            Image::Data(_, data) => Some(data),
            Image::Url(_) => None,
        },
        InputPart::Text { .. } => None,
    });
    let images: Vec<&str> = images.collect();
    let mut message = json!({ "role": "user", "content": user.to_text() });
    if !images.is_empty() {
        message["images"] = json!(images);
    }
    message
}

fn step_message(step: &Step) -> Option<Value> {
    let text = text_of(step);
    let calls: Vec<Value> = step
        .tools()
        .map(|tool| json!({ "id": tool.call.id, "function": { "name": tool.call.tool, "arguments": wire_args(tool) } }))
        .collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message =
        Map::from_iter([("role".to_owned(), "assistant".into()), ("content".to_owned(), text.into())]);
    let thinking = step.parts.iter().find_map(|part| match part {
        // Models that reason between calls receive their reasoning again; it has no signature.
        Part::Reasoning { text, .. } if !calls.is_empty() && !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    if let Some(thinking) = thinking {
        message.insert("thinking".to_owned(), thinking.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    Some(Value::Object(message))
}

fn read(reader: &mut StepReader, event: &Value) {
    if event.get("error").is_some() {
        reader.error = Some(ModelErrorKind::Unavailable);
    }
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let thinking = text("/message/thinking");
    if !thinking.is_empty() {
        reader.reasoning(thinking);
    }
    reader.text(text("/message/content"));
    if event.get("done").and_then(Value::as_bool) == Some(true) {
        reader.is_complete = true;
        reader.finish = Some(match text("/done_reason") {
            "stop" | "" => FinishReason::Stop,
            "length" => FinishReason::Length,
            _ => FinishReason::Other,
        });
        let count = |name: &str| event.get(name).and_then(Value::as_u64);
        if let (Some(input_tokens), Some(output_tokens)) = (count("prompt_eval_count"), count("eval_count")) {
            reader.usage = Some(Usage { input_tokens, output_tokens, ..Usage::default() });
        }
    }
}

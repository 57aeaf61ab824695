//! OpenAI Chat Completions, also spoken by llama.cpp, vLLM, LM Studio and many other servers.

use serde_json::{Map, Value, json};
use toolwright_providers::provider;

use super::request_parts::{results, text_of, user_parts, wire_args, wire_name};
use super::{StepReader, Transport, bearer};
use crate::event::{FinishReason, Usage};
use crate::message::{Message, Step};
use crate::model::{ModelErrorKind, ModelRequest};

const NAME: &str = "openai-chat";

pub(super) const TRANSPORT: Transport = Transport {
    provider: NAME,
    base_url: "https://api.openai.com/v1",
    key_env: Some("OPENAI_API_KEY"),
    default_model: Some("gpt-5-mini"),
    path: |_| "/chat/completions".to_owned(),
    headers: bearer,
    can_require_calls: true,
    body,
    read,
};

fn body(model: &str, request: &ModelRequest) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": &*request.system })];
    for message in &request.messages {
        match message {
            Message::User(user) => {
                let text = |text: &str| json!({ "type": "text", "text": text });
                let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url } });
                let parts = user_parts(&user.parts, text, image);
                // Some servers accept only a string.
                let content = match parts.iter().all(|part| part["type"] == "text") {
                    true => Value::String(user.to_text()),
                    false => Value::Array(parts),
                };
                messages.push(json!({ "role": "user", "content": content }));
            }
            Message::Assistant(assistant) => {
                for step in &assistant.steps {
                    messages.extend(step_message(step));
                    messages.extend(results(NAME, step));
                }
            }
        }
    }
    let mut body = json!({ "model": model, "messages": messages, "stream": true,
        "stream_options": { "include_usage": true } });
    if !request.tools.is_empty() {
        body["tools"] = request.view.declarations.clone();
    }
    if request.requires_call {
        body["tool_choice"] = "required".into();
    }
    if let Some(limit) = request.max_output_tokens {
        body["max_completion_tokens"] = limit.into();
    }
    body
}

fn step_message(step: &Step) -> Option<Value> {
    let text = text_of(step);
    let calls: Vec<Value> = step
        .tools()
        .map(|tool| {
            let name = provider(NAME).map_or("", |provider| wire_name(provider, &tool.call.tool));
            let function = json!({ "name": name, "arguments": wire_args(tool).to_string() });
            json!({ "id": tool.call.id, "type": "function", "function": function })
        })
        .collect();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    let mut message =
        Map::from_iter([("role".to_owned(), "assistant".into()), ("content".to_owned(), content)]);
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    Some(Value::Object(message))
}

fn read(reader: &mut StepReader, event: &Value) {
    if event == "[DONE]" {
        reader.is_complete = true;
        return;
    }
    if event.get("error").is_some_and(|error| !error.is_null()) {
        reader.error = Some(ModelErrorKind::Unavailable);
    }
    let choices = event.get("choices").and_then(Value::as_array);
    let first = choices.and_then(|choices| {
        choices.iter().find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
    });
    if let Some(choice) = first {
        let delta = |name: &str| choice.get("delta")?.get(name)?.as_str();
        if let Some(text) =
            delta("reasoning_content").or_else(|| delta("reasoning")).filter(|text| !text.is_empty())
        {
            reader.reasoning(text);
        }
        reader.text(delta("content").unwrap_or_default());
        reader.text(delta("refusal").unwrap_or_default());
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            // Some servers send no `[DONE]`.
            reader.is_complete = true;
            reader.finish = Some(match reason {
                "stop" => FinishReason::Stop,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "length" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Other,
            });
        }
    }
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        reader.usage = Some(Usage {
            input_tokens: count("/prompt_tokens"),
            output_tokens: count("/completion_tokens"),
            cached_tokens: count("/prompt_tokens_details/cached_tokens"),
            reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
        });
    }
}

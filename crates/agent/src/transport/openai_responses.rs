//! OpenAI Responses. The provider stores nothing: every request contains the whole conversation, with the encrypted
//! reasoning of earlier steps.

use serde_json::{Value, json};
use toolwright_providers::provider;

use super::request_parts::{own_data, results, user_parts, wire_args, wire_name};
use super::{StepReader, Transport, bearer};
use crate::event::{FinishReason, Usage};
use crate::message::{Message, Part, Step};
use crate::model::{ModelErrorKind, ModelRequest};

const NAME: &str = "openai-responses";

pub(super) const TRANSPORT: Transport = Transport {
    provider: NAME,
    base_url: "https://api.openai.com/v1",
    key_env: Some("OPENAI_API_KEY"),
    default_model: Some("gpt-5-mini"),
    path: |_| "/responses".to_owned(),
    headers: bearer,
    can_require_calls: true,
    body,
    read,
};

fn body(model: &str, request: &ModelRequest) -> Value {
    let mut input = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(user) => {
                let text = |text: &str| json!({ "type": "input_text", "text": text });
                let image = |url: &str| json!({ "type": "input_image", "detail": "auto", "image_url": url });
                let parts = user_parts(&user.parts, text, image);
                input.push(json!({ "type": "message", "role": "user", "content": parts }));
            }
            Message::Assistant(assistant) => {
                for step in &assistant.steps {
                    input.extend(items(step));
                    input.extend(results(NAME, step));
                }
            }
        }
    }
    let mut body = json!({ "model": model, "instructions": &*request.system, "input": input, "stream": true,
        "store": false, "include": ["reasoning.encrypted_content"] });
    if !request.tools.is_empty() {
        body["tools"] = request.view.declarations.clone();
    }
    if request.requires_call {
        body["tool_choice"] = "required".into();
    }
    if let Some(limit) = request.max_output_tokens {
        body["max_output_tokens"] = limit.into();
    }
    body
}

fn items(step: &Step) -> Vec<Value> {
    let item = |part: &Part| match part {
        Part::Text { text, .. } if text.is_empty() => None,
        Part::Text { text, .. } => Some(json!({ "type": "message", "role": "assistant", "content": text })),
        Part::Reasoning { provider_data, .. } => own_data(provider_data.as_ref(), NAME).cloned(),
        Part::Tool(tool) => {
            let name = provider(NAME).map_or("", |provider| wire_name(provider, &tool.call.tool));
            Some(json!({ "type": "function_call", "call_id": tool.call.id, "name": name,
                "arguments": wire_args(tool).to_string() }))
        }
    };
    step.parts.iter().filter_map(item).collect()
}

fn read(reader: &mut StepReader, event: &Value) {
    let delta = || event.get("delta").and_then(Value::as_str).unwrap_or_default();
    match event.get("type").and_then(Value::as_str).unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" => reader.text(delta()),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            reader.reasoning(delta())
        }
        "response.reasoning_summary_part.added" => {
            let is_first = event.get("summary_index").and_then(Value::as_u64).unwrap_or(0) == 0;
            reader.reasoning(if is_first { "" } else { "\n\n" });
        }
        "response.output_item.done" => end_item(reader, event.get("item").unwrap_or(&Value::Null)),
        "response.completed" => end(reader, event, FinishReason::Stop),
        "response.incomplete" => {
            let reason = event.pointer("/response/incomplete_details/reason").and_then(Value::as_str);
            let is_filtered = reason == Some("content_filter");
            end(reader, event, if is_filtered { FinishReason::ContentFilter } else { FinishReason::Length });
        }
        "response.failed" | "error" => {
            let code =
                event.pointer("/response/error/code").or_else(|| event.get("code")).and_then(Value::as_str);
            reader.error = Some(match code {
                Some("rate_limit_exceeded") => ModelErrorKind::RateLimited,
                Some("context_length_exceeded") => ModelErrorKind::ContextLength,
                _ => ModelErrorKind::Unavailable,
            });
        }
        _ => {}
    }
}

fn end_item(reader: &mut StepReader, item: &Value) {
    match item.get("type").and_then(Value::as_str) {
        Some("reasoning") => {
            reader.reasoning("");
            let mut data =
                json!({ "type": "reasoning", "summary": item.get("summary").cloned().unwrap_or(json!([])) });
            for name in ["id", "encrypted_content"] {
                if let Some(value) = item.get(name).filter(|value| value.is_string()) {
                    data[name] = value.clone();
                }
            }
            // Without the encrypted content the provider cannot restore the reasoning.
            let has_content = data.get("encrypted_content").is_some();
            reader.end_part(has_content.then_some(data));
        }
        Some("message") => reader.end_part(None),
        _ => {}
    }
}

fn end(reader: &mut StepReader, event: &Value, finish: FinishReason) {
    reader.is_complete = true;
    reader.finish = Some(finish);
    if let Some(usage) = event.pointer("/response/usage").filter(|usage| usage.is_object()) {
        let count = |path: &str| usage.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        reader.usage = Some(Usage {
            input_tokens: count("/input_tokens"),
            output_tokens: count("/output_tokens"),
            cached_tokens: count("/input_tokens_details/cached_tokens"),
            reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        });
    }
}

//! Anthropic Messages. Thinking is sent back with its signature; the prompt and the conversation are marked for the
//! cache.

use serde_json::{Value, json};
use toolwright_providers::provider;

use super::request_parts::{Image, image, own_data, results, user_parts, wire_args, wire_name};
use super::{StepReader, Transport, bearer};
use crate::event::FinishReason;
use crate::message::{Message, Part, Step};
use crate::model::{ModelErrorKind, ModelRequest};

const NAME: &str = "anthropic";
const VERSION: &str = "2026-10-21";
/// Anthropic's API requires a limit.
const MAX_OUTPUT_TOKENS: u32 = 8192;

pub(super) const TRANSPORT: Transport = Transport {
    provider: NAME,
    base_url: "https://api.anthropic.com",
    key_env: Some("ANTHROPIC_API_KEY"),
    default_model: Some("claude-sonnet-4-5"),
    path: |_| "/v1/messages".to_owned(),
    headers: |key| {
        let mut headers = bearer(key);
        headers.push(("anthropic-version", VERSION.to_owned()));
        headers
    },
    can_require_calls: true,
    body,
    read,
};

fn body(model: &str, request: &ModelRequest) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(user) => {
                let text = |text: &str| json!({ "type": "text", "text": text });
                let parts = user_parts(&user.parts, text, image_block);
                messages.push(json!({ "role": "user", "content": parts }));
            }
            Message::Assistant(assistant) => {
                for step in &assistant.steps {
                    let blocks = blocks(step);
                    if !blocks.is_empty() {
                        messages.push(json!({ "role": "assistant", "content": blocks }));
                        messages.extend(results(NAME, step));
                    }
                }
            }
        }
    }
    let cache = json!({ "type": "ephemeral" });
    let last = messages
        .last_mut()
        .and_then(|message| message["content"].as_array_mut())
        .and_then(|blocks| blocks.last_mut());
    if let Some(block) = last {
        block["cache_control"] = cache.clone();
    }
    let system = json!([{ "type": "text", "text": &*request.system, "cache_control": cache }]);
    let limit = request.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS);
    let mut body = json!({ "model": model, "max_tokens": limit, "system": system, "messages": messages, "stream": true });
    if !request.tools.is_empty() {
        body["tools"] = request.view.declarations.clone();
    }
    if request.requires_call {
        body["tool_choice"] = json!({ "type": "any" });
    }
    body
}

fn image_block(url: &str) -> Value {
    let source = match image(url) {
        Image::Url(url) => json!({ "type": "url", "url": url }),
        Image::Data(media_type, data) => json!({ "type": "base64", "media_type": media_type, "data": data }),
    };
    json!({ "type": "image", "source": source })
}

fn blocks(step: &Step) -> Vec<Value> {
    let block = |part: &Part| match part {
        Part::Text { text, .. } if text.trim().is_empty() => None,
        Part::Text { text, .. } => Some(json!({ "type": "text", "text": text })),
        Part::Reasoning { text, provider_data } => {
            let mut block = own_data(provider_data.as_ref(), NAME)?.clone();
            if block["type"] == "thinking" {
                block["thinking"] = text.as_str().into();
            }
            Some(block)
        }
        Part::Tool(tool) => {
            let name = provider(NAME).map_or("", |provider| wire_name(provider, &tool.call.tool));
            Some(json!({ "type": "tool_use", "id": tool.call.id, "name": name, "input": wire_args(tool) }))
        }
    };
    step.parts.iter().filter_map(block).collect()
}

fn read(reader: &mut StepReader, event: &Value) {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    match text("/type") {
        "message_start" => read_usage(reader, event.pointer("/message/usage")),
        "content_block_start" => match text("/content_block/type") {
            "thinking" => reader.reasoning(text("/content_block/thinking")),
            "redacted_thinking" => {
                reader.reasoning("");
                let data = event.pointer("/content_block/data").cloned().unwrap_or_default();
                reader.end_part(Some(json!({ "type": "redacted_thinking", "data": data })));
            }
            "text" => reader.text(text("/content_block/text")),
            _ => {}
        },
        "content_block_delta" => match text("/delta/type") {
            "text_delta" => reader.text(text("/delta/text")),
            "thinking_delta" => reader.reasoning(text("/delta/thinking")),
            "signature_delta" => reader.signature.push_str(text("/delta/signature")),
            _ => {}
        },
        "content_block_stop" => {
            let signature = std::mem::take(&mut reader.signature);
            let data = json!({ "type": "thinking", "signature": signature });
            reader.end_part((!signature.is_empty()).then_some(data));
        }
        "message_delta" => {
            read_usage(reader, event.get("usage"));
            reader.finish = finish(text("/delta/stop_reason")).or(reader.finish);
        }
        "message_stop" => reader.is_complete = true,
        "error" => {
            reader.error = Some(match text("/error/type") {
                "rate_limit_error" => ModelErrorKind::RateLimited,
                "authentication_error" | "permission_error" => ModelErrorKind::Authentication,
                _ => ModelErrorKind::Unavailable,
            });
        }
        _ => {}
    }
}

fn finish(reason: &str) -> Option<FinishReason> {
    Some(match reason {
        "" => return None,
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    })
}

/// Counts are totals of the message so far; `input_tokens` excludes tokens of the cache.
fn read_usage(reader: &mut StepReader, usage: Option<&Value>) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let count = |name: &str| usage.get(name).and_then(Value::as_u64);
    let read = reader.usage.get_or_insert_default();
    if let Some(input) = count("input_tokens") {
        read.cached_tokens = count("cache_read_input_tokens").unwrap_or(read.cached_tokens);
        read.input_tokens = input + read.cached_tokens + count("cache_creation_input_tokens").unwrap_or(0);
    }
    read.output_tokens = count("output_tokens").unwrap_or(read.output_tokens);
}

//! Gemini's `streamGenerateContent`. Thought signatures are sent back on their part.

use serde_json::{Value, json};
use toolwright_providers::provider;

use super::request_parts::{Image, image, own_data, results, user_parts, wire_args, wire_name};
use super::{StepReader, Transport};
use crate::event::{FinishReason, Usage};
use crate::message::{Message, Part, Step};
use crate::model::{ModelErrorKind, ModelRequest};

const NAME: &str = "gemini";

pub(super) const TRANSPORT: Transport = Transport {
    provider: NAME,
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    key_env: Some("GEMINI_API_KEY"),
    default_model: Some("gemini-flash-latest"),
    path: |model| {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("/models/{model}:streamGenerateContent?alt=sse")
    },
    headers: |key| key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect(),
    can_require_calls: true,
    body,
    read,
};

fn body(_model: &str, request: &ModelRequest) -> Value {
    let mut contents = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(user) => {
                let parts = user_parts(&user.parts, |text| json!({ "text": text }), image_part);
                contents.push(json!({ "role": "user", "parts": parts }));
            }
            Message::Assistant(assistant) => {
                for step in &assistant.steps {
                    let parts = parts(step);
                    if !parts.is_empty() {
                        contents.push(json!({ "role": "model", "parts": parts }));
                        contents.extend(results(NAME, step));
                    }
                }
            }
        }
    }
    let mut body =
        json!({ "systemInstruction": { "parts": [{ "text": &*request.system }] }, "contents": contents });
    if !request.tools.is_empty() {
        body["tools"] = request.view.declarations.clone();
    }
    if request.requires_call {
        body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "ANY" } });
    }
    if let Some(limit) = request.max_output_tokens {
        body["generationConfig"] = json!({ "maxOutputTokens": limit });
    }
    body
}

fn image_part(url: &str) -> Value {
    match image(url) {
        Image::Url(url) => json!({ "fileData": { "fileUri": url } }),
        Image::Data(media_type, data) => json!({ "inlineData": { "mimeType": media_type, "data": data } }),
    }
}

fn parts(step: &Step) -> Vec<Value> {
    let part = |part: &Part| {
        let (mut value, data) = match part {
            Part::Text { text, provider_data } => (json!({ "text": text }), provider_data),
            Part::Reasoning { .. } => return None,
            Part::Tool(tool) => {
                let name = provider(NAME).map_or("", |provider| wire_name(provider, &tool.call.tool));
                let call = json!({ "id": tool.call.id, "name": name, "args": wire_args(tool) });
                (json!({ "functionCall": call }), &tool.provider_data)
            }
        };
        if let Some(signature) = own_data(data.as_ref(), NAME) {
            value["thoughtSignature"] = signature.clone();
        }
        Some(value)
    };
    step.parts.iter().filter_map(part).collect()
}

fn read(reader: &mut StepReader, event: &Value) {
    if event.get("error").is_some() {
        reader.error = Some(ModelErrorKind::Unavailable);
    }
    let candidate = event.pointer("/candidates/0");
    let parts = candidate.and_then(|candidate| candidate.pointer("/content/parts")).and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let signature = part.get("thoughtSignature").filter(|signature| signature.is_string()).cloned();
        if part.get("functionCall").is_some() {
            reader.call_data(signature);
            continue;
        }
        let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            reader.reasoning(text);
        } else {
            reader.text(text);
            if signature.is_some() {
                reader.end_part(signature);
            }
        }
    }
    if let Some(reason) =
        candidate.and_then(|candidate| candidate.get("finishReason")).and_then(Value::as_str)
    {
        reader.is_complete = true;
        reader.finish = Some(match reason {
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                FinishReason::ContentFilter
            }
            _ => FinishReason::Other,
        });
    }
    if event.pointer("/promptFeedback/blockReason").is_some() {
        reader.is_complete = true;
        reader.finish = Some(FinishReason::ContentFilter);
    }
    if let Some(usage) = event.get("usageMetadata").filter(|usage| usage.is_object()) {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
        let thoughts = count("thoughtsTokenCount");
        reader.usage = Some(Usage {
            input_tokens: count("promptTokenCount"),
            output_tokens: count("candidatesTokenCount") + thoughts,
            cached_tokens: count("cachedContentTokenCount"),
            reasoning_tokens: thoughts,
        });
    }
}

//! The providers' forms of scripted responses, and what a provider checks in a request.

use serde_json::{Value, json};

/// A response of the model.
#[derive(Debug, Clone, Default)]
pub struct Step {
    pub reasoning: Option<&'static str>,
    pub text: &'static str,
    pub calls: Vec<Call>,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub id: &'static str,
    pub name: &'static str,
    /// JSON text, or not.
    pub args: String,
}

pub fn text(text: &'static str) -> Step {
    Step { text, ..Step::default() }
}

pub fn calls(calls: impl IntoIterator<Item = (&'static str, &'static str, Value)>) -> Step {
    let calls = calls.into_iter().map(|(id, name, args)| Call { id, name, args: args.to_string() }).collect();
    Step { calls, ..Step::default() }
}

pub const PROVIDERS: [&str; 5] = ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama"];

/// A text in two pieces.
fn pieces(text: &str) -> Vec<&str> {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [first, second].into_iter().filter(|piece| !piece.is_empty()).collect()
}

/// The frames of a response.
pub fn frames(provider: &str, step: &Step) -> Vec<String> {
    let events = match provider {
        "openai-chat" => openai_chat(step),
        "openai-responses" => openai_responses(step),
        "anthropic" => anthropic(step),
        "gemini" => gemini(step),
        _ => return ollama(step).iter().map(|event| format!("{event}\n")).collect(),
    };
    let frame = |event: &Value| match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let mut frames: Vec<String> = events.iter().map(frame).collect();
    if provider == "openai-chat" {
        frames.push("data: [DONE]\n\n".to_owned());
    }
    frames
}

fn openai_chat(step: &Step) -> Vec<Value> {
    let chunk = |delta: Value| json!({ "id": "x", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let mut events = vec![chunk(json!({ "role": "assistant", "content": null }))];
    events.extend(step.reasoning.map(|text| chunk(json!({ "reasoning_content": text }))));
    events.extend(pieces(step.text).iter().map(|text| chunk(json!({ "content": text }))));
    for (index, call) in step.calls.iter().enumerate() {
        let function = json!({ "name": call.name, "arguments": "" });
        let first = json!({ "index": index, "id": call.id, "type": "function", "function": function });
        events.push(chunk(json!({ "tool_calls": [first] })));
        for piece in pieces(&call.args) {
            let delta = json!({ "index": index, "function": { "arguments": piece } });
            events.push(chunk(json!({ "tool_calls": [delta] })));
        }
    }
    let reason = if step.calls.is_empty() { "stop" } else { "tool_calls" };
    events.push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }));
    events.push(json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } }));
    events
}

fn openai_responses(step: &Step) -> Vec<Value> {
    let mut events = vec![json!({ "type": "response.created", "response": { "id": "resp_1" } })];
    if let Some(text) = step.reasoning {
        let summary = json!([{ "type": "summary_text", "text": text }]);
        let item =
            json!({ "type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "sealed" });
        events.push(
            json!({ "type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "delta": text }),
        );
        events.push(json!({ "type": "response.output_item.done", "output_index": 0, "item": item }));
    }
    if !step.text.is_empty() {
        for piece in pieces(step.text) {
            events.push(json!({ "type": "response.output_text.delta", "item_id": "msg_1", "delta": piece }));
        }
        let item = json!({ "type": "message", "id": "msg_1", "role": "assistant",
            "content": [{ "type": "output_text", "text": step.text }] });
        events.push(json!({ "type": "response.output_item.done", "item": item }));
    }
    for (index, call) in step.calls.iter().enumerate() {
        let id = format!("fc_{index}");
        let item = |arguments: &str, status: &str| {
            json!({ "type": "function_call", "id": id, "call_id": call.id, "name": call.name,
                "arguments": arguments, "status": status })
        };
        events.push(json!({ "type": "response.output_item.added", "item": item("", "in_progress") }));
        for piece in pieces(&call.args) {
            events.push(
                json!({ "type": "response.function_call_arguments.delta", "item_id": id, "delta": piece }),
            );
        }
        events.push(json!({ "type": "response.output_item.done", "item": item(&call.args, "completed") }));
    }
    let usage = json!({ "input_tokens": 10, "output_tokens": 5, "total_tokens": 15 });
    events.push(json!({ "type": "response.completed", "response": { "id": "resp_1", "usage": usage } }));
    events
}

fn anthropic(step: &Step) -> Vec<Value> {
    let usage = json!({ "input_tokens": 4, "cache_read_input_tokens": 6, "output_tokens": 1 });
    let mut events =
        vec![json!({ "type": "message_start", "message": { "usage": usage } }), json!({ "type": "ping" })];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        for delta in deltas {
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    };
    if let Some(text) = step.reasoning {
        let thinking = json!({ "type": "thinking_delta", "thinking": text });
        let signature = json!({ "type": "signature_delta", "signature": "sealed" });
        block(json!({ "type": "thinking", "thinking": "", "signature": "" }), vec![thinking, signature]);
    }
    if !step.text.is_empty() {
        let deltas =
            pieces(step.text).iter().map(|text| json!({ "type": "text_delta", "text": text })).collect();
        block(json!({ "type": "text", "text": "" }), deltas);
    }
    for call in &step.calls {
        let delta = |piece: &&str| json!({ "type": "input_json_delta", "partial_json": piece });
        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        block(start, pieces(&call.args).iter().map(delta).collect());
    }
    let reason = if step.calls.is_empty() { "end_turn" } else { "tool_use" };
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 5 } }));
    events.push(json!({ "type": "message_stop" }));
    events
}

fn gemini(step: &Step) -> Vec<Value> {
    let chunk = |part: Value| json!({ "candidates": [{ "content": { "role": "model", "parts": [part] } }] });
    let mut events = Vec::new();
    events.extend(step.reasoning.map(|text| chunk(json!({ "text": text, "thought": true }))));
    events.extend(pieces(step.text).iter().map(|text| chunk(json!({ "text": text }))));
    for call in &step.calls {
        // The API itself parses the arguments.
        let args: Value = serde_json::from_str(&call.args).unwrap_or_else(|_| json!(call.args));
        let call = json!({ "id": call.id, "name": call.name, "args": args });
        let signature = step.reasoning.map(|_| "sealed");
        let part = match signature {
            Some(signature) => json!({ "functionCall": call, "thoughtSignature": signature }),
            None => json!({ "functionCall": call }),
        };
        events.push(chunk(part));
    }
    events.push(json!({ "candidates": [{ "content": { "parts": [] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5 } }));
    events
}

fn ollama(step: &Step) -> Vec<Value> {
    let chunk = |message: Value| json!({ "model": "test-model", "message": message, "done": false });
    let mut events = Vec::new();
    events.extend(
        step.reasoning.map(|text| chunk(json!({ "role": "assistant", "content": "", "thinking": text }))),
    );
    events
        .extend(pieces(step.text).iter().map(|text| chunk(json!({ "role": "assistant", "content": text }))));
    for call in &step.calls {
        let args: Value = serde_json::from_str(&call.args).unwrap_or_else(|_| json!(call.args));
        let call = json!({ "id": call.id, "function": { "name": call.name, "arguments": args } });
        events.push(chunk(json!({ "role": "assistant", "content": "", "tool_calls": [call] })));
    }
    events.push(
        json!({ "model": "test-model", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 5 }),
    );
    events
}

/// Fails where a provider would refuse a request: calls without a result, results without a call, empty messages.
pub fn check_request(provider: &str, body: &Value) {
    let (calls, results) = calls_and_results(provider, body);
    assert_eq!(calls, results, "{provider}: every call has one result, in order: {body:#}");
    let mut unique = calls.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), calls.len(), "{provider}: ids of calls are unique: {body:#}");
    match provider {
        "anthropic" => {
            assert!(body["max_tokens"].is_u64() && body["stream"] == true);
            let messages = body["messages"].as_array().unwrap();
            assert!(
                messages
                    .iter()
                    .all(|message| message["content"].as_array().is_some_and(|blocks| !blocks.is_empty()))
            );
            assert_eq!(messages.last().unwrap()["role"], "user");
        }
        "gemini" => {
            let contents = body["contents"].as_array().unwrap();
            assert!(contents.iter().all(|content| !content["parts"].as_array().unwrap().is_empty()));
            assert_eq!(contents.last().unwrap()["role"], "user");
        }
        _ => assert_eq!(body["stream"], true),
    }
}

/// The ids of the calls and of the results in a request.
pub fn calls_and_results(provider: &str, body: &Value) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    let items = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    match provider {
        "openai-responses" => {
            for item in items("input") {
                match item["type"].as_str() {
                    Some("function_call") => calls.push(id(&item["call_id"])),
                    Some("function_call_output") => results.push(id(&item["call_id"])),
                    _ => {}
                }
            }
        }
        "anthropic" => {
            for block in
                items("messages").iter().flat_map(|message| message["content"].as_array().cloned().unwrap())
            {
                match block["type"].as_str() {
                    Some("tool_use") => calls.push(id(&block["id"])),
                    Some("tool_result") => results.push(id(&block["tool_use_id"])),
                    _ => {}
                }
            }
        }
        "gemini" => {
            for part in
                items("contents").iter().flat_map(|content| content["parts"].as_array().cloned().unwrap())
            {
                calls.extend(part.pointer("/functionCall/id").map(id));
                results.extend(part.pointer("/functionResponse/id").map(id));
            }
        }
        _ => {
            for message in items("messages") {
                calls.extend(
                    message["tool_calls"].as_array().into_iter().flatten().map(|call| id(&call["id"])),
                );
                results.extend(message.get("tool_call_id").map(id));
            }
        }
    }
    (calls, results)
}

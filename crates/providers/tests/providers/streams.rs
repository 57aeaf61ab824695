//! Calls of whole responses, and of streams that are split at every position.

use serde_json::{Value, json};
use toolwright_contract::ErrorKind;
use toolwright_providers::{Call, Framing, MalformedEvent, PROVIDERS, Provider};

use super::{fixture, provider};

/// The bytes of the fixture stream.
fn stream(provider: &Provider) -> Vec<u8> {
    let extension = match (provider.framing, provider.name) {
        (Framing::Sse, _) => "sse",
        (Framing::Lines, _) => "ndjson",
        (Framing::Messages, _) => "jsonl",
    };
    std::fs::read(fixture(&format!("wire/{}.{extension}", provider.name))).unwrap()
}

fn response(provider: &Provider) -> Value {
    let path = fixture(&format!("wire/{}.json", provider.name));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The calls of a stream that arrives in these chunks, and its malformed events.
fn calls(provider: &Provider, chunks: &[&[u8]]) -> (Vec<Call>, Vec<MalformedEvent>) {
    let (mut decoder, mut assembler) = (provider.frame_decoder(), provider.assembler());
    let (mut calls, mut malformed) = (Vec::new(), Vec::new());
    let mut push = |event: Result<Value, MalformedEvent>, calls: &mut Vec<Call>| match event {
        Ok(event) => calls.extend(assembler.push(&event)),
        Err(error) => malformed.push(error),
    };
    for chunk in chunks {
        decoder.push(chunk).into_iter().for_each(|event| push(event, &mut calls));
    }
    decoder.finish().into_iter().for_each(|event| push(event, &mut calls));
    calls.extend(assembler.finish());
    (calls, malformed)
}

fn events(provider: &Provider, events: &[Value]) -> Vec<Call> {
    let mut assembler = provider.assembler();
    let mut calls: Vec<Call> = events.iter().flat_map(|event| assembler.push(event)).collect();
    calls.extend(assembler.finish());
    calls
}

/// The two calls of a fixture, with the ids of this provider.
fn expected(ids: [Option<&str>; 2]) -> Vec<Call> {
    let arguments = [json!({ "city": "Tromsø ☂", "days": 2 }), json!({ "city": "Rome" })];
    let call = |(id, arguments): (Option<&str>, Value)| Call {
        id: id.map(str::to_owned),
        name: "get_weather".to_owned(),
        arguments: Ok(arguments),
    };
    ids.into_iter().zip(arguments).map(call).collect()
}

fn ids(name: &str) -> [Option<&'static str>; 2] {
    match name {
        "anthropic" => [Some("toolu_1"), Some("toolu_2")],
        "ollama" => [Some("call_a"), None],
        "gemini" => [Some("fc-1"), None],
        "gemini-native" => [Some("fc-1"), Some("fc-2")],
        "mcp" => [Some("2"), Some("three")],
        _ => [Some("call_a"), Some("call_b")],
    }
}

#[test]
fn whole_responses_are_read() {
    for provider in PROVIDERS {
        let mut expected = expected(ids(provider.name));
        if provider.name == "mcp" {
            expected.truncate(1);
        }
        assert_eq!(provider.read(&response(provider)), expected, "{}", provider.name);
        assert_eq!(provider.read(&json!({ "choices": [] })), [], "{}", provider.name);
    }
}

#[test]
fn streams_are_read_wherever_they_are_split() {
    for provider in PROVIDERS {
        let bytes = stream(provider);
        let expected = (expected(ids(provider.name)), vec![]);
        if provider.framing == Framing::Messages {
            let messages: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            assert_eq!(calls(provider, &messages), expected, "{}", provider.name);
            continue;
        }
        for cut in 0..=bytes.len() {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(calls(provider, &[before, after]), expected, "{} at {cut}", provider.name);
        }
        for size in [1, 2, 3, 7, 64] {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(calls(provider, &pieces), expected, "{} by {size}", provider.name);
        }
    }
}

#[test]
fn arguments_are_assembled_wherever_they_are_split() {
    let text = r#"{"city":"Tromsø ☂","days":2}"#;
    let boundaries: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
    for first in &boundaries {
        for second in boundaries.iter().filter(|second| *second >= first) {
            let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
            for (name, events_of) in
                [("openai-chat", chat as fn(&[&str]) -> Vec<Value>), ("anthropic", anthropic)]
            {
                let calls = events(provider(name), &events_of(&pieces));
                assert_eq!(calls, expected([Some("a"), None])[..1], "{name}: {pieces:?}");
            }
        }
    }
}

fn chat(pieces: &[&str]) -> Vec<Value> {
    let event = |call: Value, end: Value| json!({ "choices": [{ "delta": { "tool_calls": [call] }, "finish_reason": end }] });
    let start =
        json!({ "index": 0, "id": "a", "function": { "name": "get_weather", "arguments": pieces[0] } });
    let mut events = vec![event(start, Value::Null)];
    for piece in &pieces[1..] {
        events.push(event(json!({ "index": 0, "function": { "arguments": piece } }), Value::Null));
    }
    events.push(json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }));
    events
}

fn anthropic(pieces: &[&str]) -> Vec<Value> {
    let block = json!({ "type": "tool_use", "id": "a", "name": "get_weather", "input": {} });
    let mut events = vec![json!({ "type": "content_block_start", "index": 0, "content_block": block })];
    for piece in pieces {
        let delta = json!({ "type": "input_json_delta", "partial_json": piece });
        events.push(json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    }
    events.push(json!({ "type": "content_block_stop", "index": 0 }));
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }));
    events
}

#[test]
fn a_truncated_stream_never_gives_a_call_that_looks_complete() {
    for name in ["openai-chat", "openai-responses", "anthropic"] {
        let provider = provider(name);
        let bytes = stream(provider);
        let complete = expected(ids(name));
        for cut in 0..bytes.len() {
            let (found, _) = calls(provider, &[&bytes[..cut]]);
            for call in found {
                let is_complete = complete.contains(&call);
                assert!(is_complete || call.arguments.is_err(), "{name} at {cut}: {call:?}");
            }
        }
    }
}

#[test]
fn arguments_that_are_not_json_become_a_validation_failure() {
    for (name, events_of) in [("openai-chat", chat as fn(&[&str]) -> Vec<Value>), ("anthropic", anthropic)] {
        let calls = events(provider(name), &events_of(&["{\"city\": ", "Oslo}"]));
        let invalid = calls[0].arguments.as_ref().unwrap_err();
        assert_eq!(invalid.text, "{\"city\": Oslo}");
        let failure = invalid.failure();
        assert_eq!(failure.kind, ErrorKind::Validation);
        assert!(!failure.retryable && !failure.partial_side_effects && failure.suggestion.is_some());
        assert!(
            failure.message.starts_with("The arguments are not readable: not JSON"),
            "{}",
            failure.message
        );
    }
    let call = json!({ "id": "c", "function": { "name": "x", "arguments": "{'a': 1}" } });
    let response = json!({ "choices": [{ "message": { "tool_calls": [call] } }] });
    assert_eq!(provider("openai-chat").read(&response)[0].arguments.as_ref().unwrap_err().text, "{'a': 1}");
}

#[test]
fn a_response_truncated_by_its_length_is_not_a_call_without_arguments() {
    let block = json!({ "type": "tool_use", "id": "a", "name": "get_weather", "input": {} });
    let anthropic = |reason: &str| {
        events(
            provider("anthropic"),
            &[
                json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": reason } }),
            ],
        )
    };
    assert!(anthropic("max_tokens")[0].arguments.is_err());
    assert_eq!(anthropic("tool_use")[0].arguments, Ok(json!({})));
    let call = json!({ "index": 0, "id": "a", "function": { "name": "get_weather", "arguments": "" } });
    let chat = |reason: &str| {
        let choice = json!({ "delta": { "tool_calls": [call] }, "finish_reason": reason });
        events(provider("openai-chat"), &[json!({ "choices": [choice] })])
    };
    assert!(chat("length")[0].arguments.is_err());
    assert_eq!(chat("tool_calls")[0].arguments, Ok(json!({})));
    let item = json!({ "type": "function_call", "id": "i", "call_id": "a", "name": "x", "arguments": "{}", "status": "incomplete" });
    let done = [json!({ "type": "response.output_item.done", "item": item })];
    assert!(events(provider("openai-responses"), &done)[0].arguments.is_err());
}

#[test]
fn the_calls_of_an_interrupted_response_are_discarded() {
    let item = |status: &str| json!({ "type": "function_call", "id": "i", "call_id": "a", "name": "x", "arguments": "{}", "status": status });
    let added = json!({ "type": "response.output_item.added", "item": item("in_progress") });
    let done = |status: &str| json!({ "type": "response.output_item.done", "item": item(status) });
    let end = |status: &str, output: Value| json!({ "type": "response.done", "response": { "status": status, "output": output } });
    let realtime = provider("openai-realtime");
    let interrupted = end("cancelled", json!([item("incomplete")]));
    assert_eq!(events(realtime, &[added.clone(), done("incomplete"), interrupted.clone()]), []);
    assert_eq!(realtime.read(&interrupted), []);
    // A call that was complete before the interruption is returned, once.
    let twice = [added.clone(), done("completed"), end("completed", json!([item("completed")]))];
    assert_eq!(events(realtime, &twice).len(), 1);
    assert_eq!(events(realtime, &[end("completed", json!([item("completed")]))]).len(), 1);
    // The next response may use the same ids of items.
    let both = [twice.as_slice(), twice.as_slice()].concat();
    assert_eq!(events(realtime, &both).len(), 2);
    let failed = json!({ "type": "response.failed", "response": { "status": "failed", "output": [] } });
    assert_eq!(events(provider("openai-responses"), &[added, failed]), []);
}

#[test]
fn servers_that_deviate_from_the_chat_api_are_supported() {
    let chat = provider("openai-chat");
    let delta = |calls: Value| json!({ "choices": [{ "delta": { "tool_calls": calls } }] });
    let whole = |id: &str, n: u64| json!({ "index": 0, "id": id, "function": { "name": "x", "arguments": format!("{{\"n\":{n}}}") } });
    let n = |call: &Call| (call.id.clone(), call.arguments.as_ref().unwrap()["n"].clone());
    let done = json!("[DONE]");
    // Every call has the index 0, and there is no finish reason.
    let calls = events(chat, &[delta(json!([whole("a", 1)])), delta(json!([whole("b", 2)])), done.clone()]);
    assert_eq!(
        calls.iter().map(n).collect::<Vec<_>>(),
        [(Some("a".into()), json!(1)), (Some("b".into()), json!(2))]
    );
    // No index at all: deltas without an id belong to the last call.
    let start = |id: &str| json!([{ "id": id, "function": { "name": "x", "arguments": "{\"n\":" } }]);
    let rest = |n: &str| json!([{ "function": { "arguments": n } }]);
    let pieces = [delta(start("a")), delta(rest("1}")), delta(start("b")), delta(rest("2}")), done.clone()];
    let calls = events(chat, &pieces);
    assert_eq!(
        calls.iter().map(n).collect::<Vec<_>>(),
        [(Some("a".into()), json!(1)), (Some("b".into()), json!(2))]
    );
    // Arguments as an object, an empty id, no arguments.
    let odd = json!([{ "index": 0, "id": "", "function": { "name": "x", "arguments": { "n": 3 } } }, { "index": 1, "function": { "name": "y" } }]);
    let calls = events(chat, &[delta(odd), done]);
    assert_eq!((calls[0].id.clone(), calls[0].arguments.clone()), (None, Ok(json!({ "n": 3 }))));
    assert_eq!((calls[1].name.as_str(), calls[1].arguments.clone()), ("y", Ok(json!({}))));
}

#[test]
fn a_malformed_event_is_reported_and_the_others_are_read() {
    let chat = provider("openai-chat");
    let mut bytes = b"data: {\"choices\": oops}\n\ndata: \xff\xfe\n\n".to_vec();
    bytes.extend(stream(chat));
    let (found, malformed) = calls(chat, &[&bytes]);
    assert_eq!(found, expected(ids(chat.name)));
    assert_eq!(malformed.len(), 2);
    assert!(malformed[0].to_string().contains("oops"), "{}", malformed[0]);
}

#[test]
fn all_line_endings_are_supported() {
    let gemini = provider("gemini");
    let text = String::from_utf8(stream(gemini)).unwrap();
    for end in ["\r\n", "\r"] {
        let bytes = format!("\u{feff}{}", text.replace('\n', end)).into_bytes();
        for cut in 0..=bytes.len() {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(calls(gemini, &[before, after]).0, expected(ids("gemini")), "{end:?} at {cut}");
        }
    }
}

#[test]
fn the_last_event_needs_no_empty_line_after_it() {
    let gemini = provider("gemini");
    let call = r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"x"}}]}}]}"#;
    let (found, malformed) = calls(gemini, &[call.as_bytes()]);
    assert_eq!((found.len(), malformed), (1, vec![]));
    assert_eq!(found[0].arguments, Ok(json!({})));
}

#[test]
fn a_call_without_a_name_is_returned() {
    let message = json!({ "toolCall": { "functionCalls": [{ "id": "f" }] } });
    let calls = provider("gemini-native").read(&message);
    assert_eq!(calls, [Call { id: Some("f".to_owned()), name: String::new(), arguments: Ok(json!({})) }]);
}

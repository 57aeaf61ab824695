//! The messages of each provider, without a socket.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_contract::ToolSpec;
use toolwright_providers::provider;

use super::gpt_live::{pieces, tokens};
use super::{
    Codec, CodecOutput, Command, ConnectionSetup, Event, HistoryMessage, ModelCall, Role, VOICE_PROVIDERS,
    voice_provider,
};

fn setup(name: &str, model: &str) -> ConnectionSetup {
    let spec: ToolSpec = serde_json::from_value(json!({
        "toolId": "kb_search", "version": "1.0.0", "description": "Searches.", "category": "retrieval",
        "sideEffects": "read_only", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["voice"],
        "latencyBudgetMs": 800, "jsonSchema": { "type": "object", "properties": { "query": { "type": "string" } } }
    }))
    .unwrap();
    let view = provider(voice_provider(name).unwrap().view).unwrap().view([&spec]);
    ConnectionSetup {
        model: model.to_owned(),
        instructions: "Be brief.".into(),
        view: Arc::new(view),
        voice: None,
        language: Some("de-AT".to_owned()),
        history: vec![
            HistoryMessage { role: Role::User, text: "Hello".to_owned() },
            HistoryMessage { role: Role::Assistant, text: "Hi".to_owned() },
        ],
        resume: None,
    }
}

fn codec(name: &str, model: &str) -> Box<dyn Codec> {
    (voice_provider(name).unwrap().codec)(setup(name, model))
}

/// The messages that a step sends, and its events.
fn codec_output(step: impl FnOnce(&mut CodecOutput)) -> (Vec<Value>, Vec<Event>) {
    let mut output = CodecOutput::default();
    step(&mut output);
    let messages = output.messages.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    (messages, output.events)
}

fn read(codec: &mut dyn Codec, message: Value) -> (Vec<Value>, Vec<Event>) {
    codec_output(|output| codec.message(&message, output))
}

fn write(codec: &mut dyn Codec, command: Command) -> Vec<Value> {
    codec_output(|output| codec.command(command, output)).0
}

fn result(id: &str) -> Command {
    let content = Arc::new(json!({ "ok": true, "data": { "hits": 2 } }));
    Command::Result { id: id.to_owned(), name: "kb_search".to_owned(), content }
}

#[test]
fn gemini_states_the_behavior_of_every_tool_by_model() {
    for (model, behavior) in
        [("gemini-2.5-live", "BLOCKING"), ("gemini-3.8-live-extended-thinking", "NON_BLOCKING")]
    {
        let mut codec = codec("gemini-live", model);
        let (messages, _) = codec_output(|output| codec.open(output));
        let setup = &messages[0]["setup"];
        assert_eq!(setup["model"], format!("models/{model}"));
        assert_eq!(setup["tools"][0]["functionDeclarations"][0]["behavior"], behavior);
        assert_eq!(setup["historyConfig"]["initialHistoryInClientContent"], true);
        assert_eq!(setup["generationConfig"]["speechConfig"]["languageCode"], "de-AT");
        let (messages, events) = read(&mut *codec, json!({ "setupComplete": {} }));
        assert_eq!(events, [Event::Ready]);
        assert_eq!(messages[0]["clientContent"]["turns"][1]["role"], "model");
        let answer = write(&mut *codec, result("c1"));
        let response = &answer[0]["toolResponse"]["functionResponses"][0];
        assert_eq!((&response["id"], &response["name"]), (&json!("c1"), &json!("kb_search")));
        let scheduling = (behavior == "NON_BLOCKING").then(|| json!("WHEN_IDLE"));
        assert_eq!(response.get("scheduling"), scheduling.as_ref());
    }
}

#[test]
fn gemini_resumes_with_a_handle_and_without_history() {
    let mut setup = setup("gemini-live", "gemini-2.5-live");
    setup.resume = Some("h-1".to_owned());
    let mut codec = (voice_provider("gemini-live").unwrap().codec)(setup);
    let (messages, _) = codec_output(|output| codec.open(output));
    assert_eq!(messages[0]["setup"]["sessionResumption"], json!({ "handle": "h-1" }));
    assert!(messages[0]["setup"].get("historyConfig").is_none());
    assert_eq!(read(&mut *codec, json!({ "setupComplete": {} })).0, Vec::<Value>::new());
}

#[test]
fn gemini_events_are_read() {
    let mut codec = codec("gemini-live", "gemini-3.8-live");
    let events = |codec: &mut dyn Codec, message: Value| read(codec, message).1;
    let part = json!({ "inlineData": { "mimeType": "audio/pcm;rate=24000", "data": "AQACAA==" } });
    let audio = json!({ "serverContent": { "modelTurn": { "parts": [part] }, "outputTranscription": { "text": "Hi" } } });
    let expected =
        [Event::Audio { item: None, pcm: vec![1, 0, 2, 0] }, Event::AssistantText("Hi".to_owned())];
    assert_eq!(events(&mut *codec, audio), expected);
    let done =
        |status: &str| json!({ "serverContent": { "turnComplete": true, "interactionStatus": status } });
    assert_eq!(events(&mut *codec, done("IN_PROGRESS")), []);
    assert_eq!(events(&mut *codec, done("IDLE")), [Event::TurnComplete]);
    let call = json!({ "toolCall": { "functionCalls": [{ "id": "f1", "name": "kb_search", "args": { "query": "x" } }] } });
    let args = Ok(json!({ "query": "x" }));
    let expected = ModelCall { id: "f1".to_owned(), name: "kb_search".to_owned(), args };
    assert_eq!(events(&mut *codec, call), [Event::Calls(vec![expected])]);
    let cancelled = json!({ "toolCallCancellation": { "ids": ["f1"] } });
    assert_eq!(events(&mut *codec, cancelled), [Event::CallsCancelled(vec!["f1".to_owned()])]);
    let leaving = json!({ "goAway": { "timeLeft": "4.5s" } });
    assert_eq!(events(&mut *codec, leaving), [Event::GoingAway { left: Duration::from_millis(4500) }]);
    let update = json!({ "sessionResumptionUpdate": { "resumable": true, "newHandle": "h" } });
    assert_eq!(events(&mut *codec, update), [Event::Resumable(Some("h".to_owned()))]);
    let update = json!({ "sessionResumptionUpdate": { "resumable": false } });
    assert_eq!(events(&mut *codec, update), [Event::Resumable(None)]);
    assert_eq!(events(&mut *codec, json!({ "usageMetadata": {} })), []);
}

fn response_done(status: &str, output: Value) -> Value {
    json!({ "type": "response.done", "response": { "status": status, "output": output } })
}

fn function_call(id: &str) -> Value {
    json!({ "type": "function_call", "status": "completed", "call_id": id, "name": "kb_search", "arguments": "{}" })
}

#[test]
fn realtime_asks_for_one_response_after_all_results() {
    let mut codec = codec("openai-realtime", "gpt-realtime");
    let (messages, _) = codec_output(|output| codec.open(output));
    assert_eq!(messages[0]["session"]["type"], "realtime");
    assert_eq!(messages[0]["session"]["audio"]["input"]["transcription"]["language"], "de");
    let (history, events) = read(&mut *codec, json!({ "type": "session.updated" }));
    assert_eq!((history.len(), events), (2, vec![Event::Ready]));
    read(&mut *codec, json!({ "type": "response.created" }));
    let (_, events) =
        read(&mut *codec, response_done("completed", json!([function_call("a"), function_call("b")])));
    assert!(matches!(&events[..], [Event::Calls(calls)] if calls.len() == 2), "{events:?}");
    let first = write(&mut *codec, result("b"));
    assert_eq!(first.len(), 1, "the other call has no result yet");
    assert_eq!(first[0]["item"]["call_id"], "b");
    let second = write(&mut *codec, result("a"));
    assert_eq!(second[1], json!({ "type": "response.create" }));
    // While a response is being made, no other is requested.
    assert_eq!(write(&mut *codec, Command::Context("late".to_owned())).len(), 1);
    let (next, events) = read(&mut *codec, response_done("completed", json!([])));
    assert_eq!(next, [json!({ "type": "response.create" })]);
    assert_eq!(events, [Event::TurnComplete]);
}

#[test]
fn realtime_ignores_the_calls_of_an_interrupted_response_and_truncates_what_was_not_heard() {
    let mut codec = codec("openai-realtime", "gpt-realtime");
    read(&mut *codec, json!({ "type": "session.updated" }));
    read(&mut *codec, json!({ "type": "response.created" }));
    let interrupt = Command::Interrupt { item: Some("item_1".to_owned()), ms: 120 };
    let messages = write(&mut *codec, interrupt.clone());
    assert_eq!(messages[0], json!({ "type": "response.cancel" }));
    assert_eq!((&messages[1]["item_id"], &messages[1]["audio_end_ms"]), (&json!("item_1"), &json!(120)));
    let (_, events) = read(&mut *codec, response_done("cancelled", json!([function_call("a")])));
    assert_eq!(events, [Event::Interrupted, Event::TurnComplete]);
    assert_eq!(write(&mut *codec, interrupt).len(), 1, "nothing is left to cancel");
}

#[test]
fn realtime_does_not_cancel_what_the_users_speech_cancels() {
    let mut codec = codec("openai-realtime", "gpt-realtime");
    read(&mut *codec, json!({ "type": "session.updated" }));
    read(&mut *codec, json!({ "type": "response.created" }));
    let speech = || json!({ "type": "input_audio_buffer.speech_started" });
    assert_eq!(read(&mut *codec, speech()).1, [Event::SpeechStarted]);
    let messages = write(&mut *codec, Command::Interrupt { item: Some("item_1".to_owned()), ms: 120 });
    assert_eq!(messages.len(), 1, "only truncated: {messages:?}");
    read(&mut *codec, response_done("cancelled", json!([])));
    // The next response is not interrupted by speech, and a filler never is.
    read(&mut *codec, json!({ "type": "response.created" }));
    let interrupt = || Command::Interrupt { item: None, ms: 0 };
    assert_eq!(write(&mut *codec, interrupt()), [json!({ "type": "response.cancel" })]);
    read(&mut *codec, response_done("cancelled", json!([])));
    write(&mut *codec, Command::Filler("One moment.".to_owned()));
    read(&mut *codec, speech());
    assert_eq!(write(&mut *codec, interrupt()), [json!({ "type": "response.cancel" })]);
}

#[test]
fn a_filler_is_outside_of_the_conversation() {
    let mut codec = codec("openai-realtime", "gpt-realtime");
    read(&mut *codec, json!({ "type": "session.updated" }));
    read(&mut *codec, response_done("completed", json!([function_call("a")])));
    let filler = write(&mut *codec, Command::Filler("One moment.".to_owned()));
    assert_eq!(filler[0]["response"]["conversation"], "none");
    let delta = json!({ "type": "response.output_audio.delta", "item_id": "i", "delta": "AQA=" });
    assert_eq!(read(&mut *codec, delta).1, [Event::Audio { item: None, pcm: vec![1, 0] }]);
    assert_eq!(write(&mut *codec, result("a")).len(), 1, "the filler is being said");
    let (messages, events) = read(&mut *codec, response_done("completed", json!([])));
    assert_eq!(messages, [json!({ "type": "response.create" })]);
    assert_eq!(events, [], "a filler ends no turn");
}

#[test]
fn an_error_before_the_session_is_set_up_ends_the_connection() {
    for provider in VOICE_PROVIDERS.iter().filter(|provider| provider.name != "gemini-live") {
        let mut codec = codec(provider.name, "m");
        let error = json!({ "type": "error", "error": { "code": "invalid_value", "message": "No." } });
        let (_, events) = read(&mut *codec, error);
        assert_eq!(events, [Event::Closed { reason: "invalid_value: No.".to_owned() }], "{}", provider.name);
    }
}

#[test]
fn gpt_live_speaks_commentary_in_pieces_and_reports_delegations() {
    let mut codec = codec("gpt-live", "gpt-live-1");
    let (messages, _) = codec_output(|output| codec.open(output));
    let session = &messages[0]["session"];
    assert_eq!((&session["model"], &session["delegation"]["type"]), (&json!("gpt-live-1"), &json!("client")));
    assert_eq!(session["input"].as_array().unwrap().len(), 2);
    assert_eq!(read(&mut *codec, json!({ "type": "session.started" })).1, [Event::Ready]);
    let created =
        json!({ "type": "session.delegation.created", "delegation": { "id": "d1", "target": "client" } });
    assert_eq!(read(&mut *codec, created).1, [Event::Delegated { id: "d1".to_owned() }]);
    let text = "A sentence with seven words in it. ".repeat(200);
    let commentary =
        write(&mut *codec, Command::Commentary { delegation: Some("d1".to_owned()), text: text.clone() });
    assert!(commentary.len() > 3);
    for piece in &commentary {
        let content = piece["content"].as_str().unwrap();
        assert!(tokens(content) <= 450 && content.ends_with('.'), "{content}");
        assert_eq!(piece["delegation_id"], "d1");
    }
    let whole: Vec<&str> = commentary.iter().map(|piece| piece["content"].as_str().unwrap()).collect();
    assert_eq!(whole.join(" "), text.trim());
    let said = write(&mut *codec, Command::Commentary { delegation: None, text: "Hello.".to_owned() });
    assert_eq!(said[0]["delegation_id"], Value::Null, "the key is required");
    // Without a microphone, silence keeps the model's clock running.
    let (messages, _) = codec_output(|output| codec.tick(output));
    assert_eq!(messages[0]["type"], "session.input_audio.append");
}

#[test]
fn text_of_any_script_is_cut_into_pieces() {
    for text in ["", "short", &"あ".repeat(1000), &"x".repeat(5000), &"wort ".repeat(999)] {
        let pieces = pieces(text, 100);
        assert!(pieces.iter().all(|piece| tokens(piece) <= 100 && !piece.is_empty()));
        assert_eq!(pieces.concat().replace(' ', ""), text.replace(' ', ""));
    }
}

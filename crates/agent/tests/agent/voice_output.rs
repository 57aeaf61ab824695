//! Output to the client and the model: suppressed output, messages, fillers, the end of a session, dropped audio.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolwright_agent::voice::{ClientInput, ClientOutput, EndReason, StartRequest};

use crate::scripted_voice::ModelSide;
use crate::support::until;
use crate::voice_fixture::{Caller, Voice, change};

fn suppress(kind: &str, value: bool) -> Value {
    json!({ "type": format!("SUPPRESS_{kind}"), "value": value })
}

/// The outputs in short: audio and its begins and ends, transcripts, and changes of suppression.
fn short(outputs: &[ClientOutput]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for output in outputs {
        let word = match output {
            ClientOutput::AudioStarted { .. } => "started".to_owned(),
            ClientOutput::Audio(_) => "audio".to_owned(),
            ClientOutput::AudioEnded { .. } => "ended".to_owned(),
            ClientOutput::Transcript { text, is_final: true, .. } => text.clone(),
            ClientOutput::Suppressed { audio, transcript } => format!("suppressed {audio} {transcript}"),
            _ => continue,
        };
        if found.last() != Some(&word) {
            found.push(word);
        }
    }
    found
}

#[tokio::test]
async fn suppressed_audio_and_transcripts_are_not_sent_and_an_open_item_is_ended_first() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    model.begins_to_say("One");
    change(&mut model, "a", &[suppress("AUDIO", true)]).await;
    model.says(" two");
    assert_eq!(caller.answer().await, "One two");
    change(&mut model, "b", &[suppress("TRANSCRIPT", true)]).await;
    model.says("Three");
    model.hears("hello");
    model.says("Four");
    change(&mut model, "c", &[suppress("AUDIO", false)]).await;
    model.begins_to_say("Five");
    change(&mut model, "d", &[suppress("TRANSCRIPT", false)]).await;
    model.says(" six");
    caller.send(ClientInput::Stop).await;
    let mut outputs = Vec::new();
    while !matches!(outputs.last(), Some(ClientOutput::Ended { .. })) {
        outputs.push(caller.client.output.next().await);
    }
    let expected = [
        "suppressed true true",
        "suppressed false true",
        "started",
        "audio",
        "ended",
        "suppressed false false",
    ];
    let found = short(&outputs);
    assert_eq!(found[..expected.len()], expected, "{found:?}");
}

#[tokio::test]
async fn an_item_that_is_being_sent_when_audio_is_suppressed_is_ended_for_the_client() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    model.begins_to_say("One");
    caller.wait(|output| matches!(output, ClientOutput::AudioStarted { .. }).then_some(())).await;
    // Another process suppresses the audio while the model speaks: the session's record is read every 5 seconds.
    let session = caller.session.clone();
    let call = toolwright_orchestrator::ToolCall {
        id: Some("other".to_owned()),
        tool: "session_change".to_owned(),
        args: json!({ "intents": [suppress("AUDIO", true)] }),
    };
    let reference = toolwright_orchestrator::SessionRef::Id(session);
    let request = toolwright_orchestrator::CallRequest::new(reference, call);
    assert!(voice.fixture.orchestrator.call(request).await.outcome.is_ok());
    let outputs = wait_for_suppression(&mut caller).await;
    assert_eq!(short(&outputs), ["audio", "ended", "suppressed true false"]);
    model.says(" two");
    assert_eq!(caller.answer().await, "One two");
    change(&mut model, "b", &[suppress("AUDIO", false)]).await;
    wait_for_suppression(&mut caller).await;
    model.says("Three");
    caller.wait(|output| matches!(output, ClientOutput::AudioEnded { .. }).then_some(())).await;
}

async fn wait_for_suppression(caller: &mut Caller) -> Vec<ClientOutput> {
    let mut outputs = Vec::new();
    while !matches!(outputs.last(), Some(ClientOutput::Suppressed { .. })) {
        outputs.push(caller.client.output.next().await);
    }
    outputs
}

#[tokio::test]
async fn output_stays_suppressed_when_a_client_resumes_and_when_the_session_is_continued() {
    let mut voice = Voice::with(json!({ "grace_s": 1 })).await;
    let (caller, mut model) = voice.start().await;
    change(&mut model, "a", &[suppress("AUDIO", true)]).await;
    let Caller { client, session, token } = caller;
    drop(client);
    let request =
        StartRequest { session: Some(session.clone()), resume_token: Some(token), ..voice.request() };
    let mut caller = Caller::new(voice.agent.start(request).await.unwrap());
    let is_suppressed = |output: &ClientOutput| {
        assert!(!matches!(output, ClientOutput::Audio(_)), "audio is suppressed");
        matches!(output, ClientOutput::Suppressed { audio: true, transcript: false }).then_some(())
    };
    caller.wait(is_suppressed).await;
    model.says("Silent.");
    caller
        .wait(|output| {
            assert!(!matches!(output, ClientOutput::Audio(_)), "audio is suppressed");
            matches!(output, ClientOutput::Transcript { is_final: true, .. }).then_some(())
        })
        .await;
    drop(caller);
    until(|| voice.agent.metrics().ended.contains_key("abandoned")).await;
    let request = StartRequest { session: Some(session), ..voice.request() };
    let (mut caller, model) = voice.start_with(request).await;
    caller.wait(is_suppressed).await;
    model.says("Still silent.");
    caller
        .wait(|output| {
            assert!(!matches!(output, ClientOutput::Audio(_)), "audio is suppressed");
            matches!(output, ClientOutput::Transcript { text, is_final: true, .. } if text == "Still silent.")
                .then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_pending_message_is_shown_and_told_in_the_next_turn() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    model.hears("remind me");
    change(&mut model, "a", &[json!({ "type": "SET_PENDING_MESSAGE", "message": "Bring a coat." })]).await;
    model.says("I will.");
    caller.answer().await;
    model.hears("hello");
    assert_eq!(message(&mut caller).await, "Bring a coat.");
    model.says("Hello.");
    assert!(model.note().await.contains("Bring a coat."));
}

async fn message(caller: &mut Caller) -> String {
    caller
        .wait(|output| match output {
            ClientOutput::Message { text, data: None } => text.clone(),
            _ => None,
        })
        .await
}

#[tokio::test]
async fn a_pending_message_is_shown_when_the_text_agent_begins_a_delegated_turn() {
    let mut voice = Voice::with(json!({ "provider": "gpt-live" })).await;
    let ready = json!({ "type": "session.started" });
    let (client, model) = tokio::join!(voice.agent.start(voice.request()), voice.server.accept_with(ready));
    let mut caller = Caller::new(client.unwrap());
    let session = caller.wait(|output| match output {
        ClientOutput::Ready(ready) => Some(ready.session.clone()),
        _ => None,
    });
    let session = session.await;
    let call = toolwright_orchestrator::ToolCall {
        id: Some("other".to_owned()),
        tool: "session_change".to_owned(),
        args: json!({ "intents": [{ "type": "SET_PENDING_MESSAGE", "message": "Bring a coat." }] }),
    };
    let reference = toolwright_orchestrator::SessionRef::Id(session);
    let request = toolwright_orchestrator::CallRequest::new(reference, call);
    assert!(voice.fixture.orchestrator.call(request).await.outcome.is_ok());
    model.send(json!({ "type": "session.input_transcript.delta", "delta": "hello" }));
    model.send(
        json!({ "type": "session.delegation.created", "delegation": { "id": "d1", "target": "client" } }),
    );
    assert_eq!(message(&mut caller).await, "Bring a coat.");
}

#[tokio::test]
async fn a_session_ends_when_the_client_never_reports_the_farewell() {
    let mut voice = Voice::with(json!({ "farewell_s": 7, "idle_s": 3000 })).await;
    let (mut caller, mut model) = voice.start().await;
    model.hears("goodbye");
    tokio::time::pause();
    change(&mut model, "a", &[json!({ "type": "END_VOICE_SESSION", "after": "farewell_spoken" })]).await;
    let began = Instant::now();
    // The model says nothing.
    assert_eq!(caller.end().await, EndReason::Tool);
    assert_eq!(began.elapsed().as_secs(), 7);
}

/// A session with OpenAI Realtime.
async fn realtime(section: Value) -> (Voice, Caller, ModelSide) {
    let mut section = section;
    section["provider"] = "openai-realtime".into();
    let mut voice = Voice::with(section).await;
    let ready = json!({ "type": "session.updated" });
    let (client, model) = tokio::join!(voice.agent.start(voice.request()), voice.server.accept_with(ready));
    (voice, Caller::new(client.unwrap()), model)
}

/// The model calls a tool that runs until the fixture opens.
async fn begin_slow_call(voice: &Voice, model: &ModelSide, id: &str) {
    let started = Arc::clone(&voice.fixture.started);
    let before = started.load(std::sync::atomic::Ordering::SeqCst);
    let call = json!({ "type": "function_call", "call_id": id, "name": "note_add", "status": "completed",
        "arguments": "{\"text\":\"a\",\"wait\":true}" });
    model.send(json!({ "type": "response.done", "response": { "status": "completed", "output": [call] } }));
    until(|| started.load(std::sync::atomic::Ordering::SeqCst) > before).await;
}

fn is_filler(message: &Value) -> bool {
    message["response"]["instructions"] == "say One moment, please."
}

#[tokio::test]
async fn a_filler_is_said_once_while_a_tool_runs() {
    let (voice, _caller, mut model) = realtime(json!({ "filler_after_ms": 20 })).await;
    begin_slow_call(&voice, &model, "c1").await;
    let filler = model.next().await;
    assert!(is_filler(&filler), "{filler}");
    model.send(json!({ "type": "response.created" }));
    model.send(json!({ "type": "response.done", "response": { "status": "completed", "output": [] } }));
    tokio::time::pause();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    assert!(model.try_next().is_none(), "it is not said twice");
    tokio::time::resume();
    voice.fixture.open.add_permits(1);
    assert_eq!(model.next().await["item"]["call_id"], "c1");
    assert_eq!(voice.agent.metrics().fillers, 1);
}

#[tokio::test]
async fn a_filler_waits_until_the_model_has_spoken() {
    let (voice, _caller, mut model) = realtime(json!({ "filler_after_ms": 20 })).await;
    model.send(json!({ "type": "response.created" }));
    begin_slow_call(&voice, &model, "c1").await;
    model.send(json!({ "type": "response.created" }));
    tokio::time::pause();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    tokio::time::resume();
    model.send(json!({ "type": "response.done", "response": { "status": "completed", "output": [] } }));
    let filler = model.next().await;
    assert!(is_filler(&filler), "{filler}");
    assert_eq!(voice.agent.metrics().fillers, 1);
}

#[tokio::test]
async fn without_a_text_there_is_no_filler() {
    let (voice, _caller, mut model) = realtime(json!({ "filler_after_ms": 20, "filler": "" })).await;
    begin_slow_call(&voice, &model, "c1").await;
    tokio::time::pause();
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    tokio::time::resume();
    voice.fixture.open.add_permits(1);
    assert_eq!(model.next().await["item"]["call_id"], "c1");
    assert_eq!(voice.agent.metrics().fillers, 0);
}

#[tokio::test]
async fn a_provider_that_takes_no_audio_gets_the_last_four_seconds_and_the_client_one_warning() {
    let mut voice = Voice::new().await;
    let (mut caller, model) = voice.start().await;
    model.stops_reading();
    // Buffers of the sockets take the first megabytes.
    let mut sent = 0;
    while voice.agent.metrics().dropped_frames == 0 {
        caller.send(ClientInput::Audio([0, 64].repeat(16_000))).await;
        sent += 1;
        tokio::task::yield_now().await;
    }
    caller
        .wait(|output| matches!(output, ClientOutput::Warning { code: "audio_dropped", .. }).then_some(()))
        .await;
    assert!(sent > 4, "four seconds wait: {sent}");
    let before = voice.agent.metrics().dropped_frames;
    for _ in 0..10 {
        caller.send(ClientInput::Audio([0, 64].repeat(16_000))).await;
    }
    until(|| voice.agent.metrics().dropped_frames >= before + 10).await;
    let outputs = caller.until_now().await;
    let warned = outputs.iter().any(|output| matches!(output, ClientOutput::Warning { .. }));
    assert!(!warned, "one warning is enough: {outputs:?}");
}

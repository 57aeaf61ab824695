//! How voice sessions end: every call is answered before, and limits end what nobody ends.

use std::sync::atomic::Ordering;

use serde_json::json;
use toolwright_agent::voice::{ClientInput, ClientOutput, CloseReason, EndReason};

use crate::scripted_voice::ModelSide;
use crate::support::until;
use crate::voice_fixture::{Caller, Voice};

/// A session with a write `w` and a read `r` that run until the fixture opens.
async fn busy(section: serde_json::Value) -> (Voice, Caller, ModelSide) {
    let mut voice = Voice::with(section).await;
    let (caller, model) = voice.start().await;
    model.hears("do both");
    model.calls(&[("r", "kb_search", json!({ "query": "wait" }))]);
    model.calls(&[("w", "note_add", json!({ "text": "a", "wait": true }))]);
    until(|| voice.fixture.started.load(Ordering::SeqCst) == 2).await;
    (voice, caller, model)
}

/// The rest of what the client is told, in short.
async fn rest(caller: &mut Caller) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        match caller.client.output.next().await {
            ClientOutput::ToolFinished { call_id, error, .. } => {
                told.push(format!("{call_id} {}", error.unwrap_or_else(|| "ok".to_owned())));
            }
            ClientOutput::Ending { reason, .. } => told.push(format!("ending {}", reason.as_str())),
            ClientOutput::Ended { reason } => told.push(format!("ended {}", reason.as_str())),
            ClientOutput::Closed(reason) => {
                told.push(format!("{reason:?}"));
                return told;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_stopped_session_answers_its_calls_and_then_ends() {
    let (voice, mut caller, mut model) = busy(json!({})).await;
    caller.send(ClientInput::Stop).await;
    let (id, content) = model.result().await;
    assert_eq!((id.as_str(), &content["error"]["type"]), ("r", &json!("TRANSIENT")));
    voice.fixture.open.add_permits(1);
    assert_eq!(model.result().await, ("w".to_owned(), json!({ "output": { "done": "note_add" } })));
    let expected = ["ending stopped", "r TRANSIENT", "w ok", "ended stopped", "Ended"];
    assert_eq!(rest(&mut caller).await, expected);
    assert_eq!(voice.fixture.runs().len(), 1);
}

#[tokio::test]
async fn a_session_that_its_client_has_left_answers_its_calls() {
    let (voice, caller, mut model) = busy(json!({ "grace_s": 0 })).await;
    drop(caller);
    assert_eq!(model.result().await.0, "r");
    voice.fixture.open.add_permits(1);
    assert_eq!(model.result().await, ("w".to_owned(), json!({ "output": { "done": "note_add" } })));
    until(|| voice.agent.metrics().ended.get("abandoned") == Some(&1)).await;
}

#[tokio::test]
async fn a_write_that_outlasts_its_session_is_answered_as_running_and_takes_effect_once() {
    let (voice, mut caller, mut model) = busy(json!({})).await;
    tokio::time::pause();
    caller.send(ClientInput::Stop).await;
    let expected = ["ending stopped", "r TRANSIENT", "w TRANSIENT", "ended stopped", "Ended"];
    assert_eq!(rest(&mut caller).await, expected);
    model.result().await;
    let (id, content) = model.result().await;
    let error = &content["error"];
    assert_eq!((id.as_str(), &error["partialSideEffects"]), ("w", &json!(true)), "{content}");
    assert!(error["suggestion"].as_str().unwrap().contains("call `w`"), "{content}");
    voice.fixture.open.add_permits(1);
    until(|| voice.fixture.runs().len() == 1).await;
}

#[tokio::test]
async fn a_server_that_shuts_down_answers_the_calls_and_leaves_the_session_for_later() {
    let (voice, mut caller, mut model) = busy(json!({})).await;
    let agent = voice.agent.clone();
    let stopped = tokio::spawn(async move { agent.shut_down().await });
    assert_eq!(model.result().await.0, "r");
    voice.fixture.open.add_permits(1);
    assert_eq!(model.result().await.0, "w");
    stopped.await.unwrap();
    assert_eq!(rest(&mut caller).await, ["r TRANSIENT", "w ok", &format!("{:?}", CloseReason::Shutdown)]);
}

#[tokio::test]
async fn a_session_in_which_nothing_happens_ends_but_not_while_a_call_runs() {
    let mut voice = Voice::with(json!({ "idle_s": 2 })).await;
    let (mut caller, mut model) = voice.start().await;
    model.hears("add a note");
    model.calls(&[("w", "note_add", json!({ "text": "a", "wait": true }))]);
    until(|| voice.fixture.started.load(Ordering::SeqCst) == 1).await;
    tokio::time::pause();
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    assert_eq!(voice.agent.metrics().running, 1);
    voice.fixture.open.add_permits(1);
    model.result().await;
    let began = tokio::time::Instant::now();
    assert_eq!(caller.end().await, EndReason::Idle);
    assert_eq!(began.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn a_session_ends_after_its_longest_duration_whatever_is_said() {
    let mut voice = Voice::with(json!({ "max_s": 20, "idle_s": 12 })).await;
    let (mut caller, _model) = voice.start().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for _ in 0..6 {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        caller.send(ClientInput::Audio([0, 64].repeat(1600))).await;
    }
    assert_eq!(caller.end().await, EndReason::MaxDuration);
    assert_eq!(began.elapsed().as_secs(), 20);
}

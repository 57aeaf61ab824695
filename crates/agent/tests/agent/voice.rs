//! The rules of the voice bridge, with a model that the test plays.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwright_agent::voice::{
    ClientInput, ClientOutput, DecidedBy, EndReason, Outcome, Speaker, StartError, StartRequest, VoiceAgent,
    VoiceSection,
};
use toolwright_agent::{Message, TurnOutcome};
use toolwright_contract::Principal;

use crate::scripted_voice::ModelSide;
use crate::support::until;
use crate::voice_fixture::{Caller, Voice};

#[tokio::test]
async fn every_call_runs_once_and_is_answered_once() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let declared = model.setup["tools"][0]["functionDeclarations"].as_array().unwrap().clone();
    assert!(declared.iter().all(|tool| tool["behavior"] == "BLOCKING"), "{declared:?}");
    model.hears("add a note");
    model.calls(&[("f1", "note_add", json!({ "text": "a" })), ("f2", "nothing", json!({}))]);
    model.calls(&[("f1", "note_add", json!({ "text": "a" }))]);
    let mut answers = [model.result().await, model.result().await];
    answers.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(answers[0], ("f1".to_owned(), json!({ "output": { "done": "note_add" } })));
    assert_eq!((answers[1].0.as_str(), &answers[1].1["error"]["type"]), ("f2", &json!("NOT_FOUND")));
    assert_eq!((caller.finished().await, caller.finished().await.as_deref()), (None, Some("NOT_FOUND")));
    model.says("Done.");
    assert_eq!(caller.answer().await, "Done.");
    assert_eq!(voice.fixture.runs().len(), 1);
    caller.send(ClientInput::Stop).await;
    assert_eq!(caller.end().await, EndReason::Stopped);
    until(|| voice.agent.metrics().running == 0).await;
    assert!(model.try_next().is_none(), "no second answer");
    assert!(model.setup["systemInstruction"]["parts"][0]["text"].as_str().unwrap().contains("In voice:"));
}

#[tokio::test]
async fn a_turn_has_two_retrievals_over_all_of_its_messages() {
    let mut voice = Voice::new().await;
    let (_caller, mut model) = voice.start().await;
    let search = |id: &'static str| [(id, "kb_search", json!({ "query": id }))];
    model.hears("look it up");
    let mut kinds = Vec::new();
    for id in ["a", "b", "c"] {
        model.calls(&search(id));
        kinds.push(model.result().await.1["error"]["type"].clone());
    }
    assert_eq!(kinds, [Value::Null, Value::Null, json!("BUDGET_EXCEEDED")]);
    model.says("Here.");
    model.hears("again");
    model.calls(&search("d"));
    assert_eq!(model.result().await.1["error"], Value::Null);
}

#[tokio::test]
async fn a_result_that_comes_after_the_connection_was_replaced_is_told_to_the_new_one() {
    let mut voice = Voice::new().await;
    let (mut caller, model) = voice.start().await;
    model.send(json!({ "sessionResumptionUpdate": { "resumable": true, "newHandle": "h-1" } }));
    model.hears("add a note");
    model.calls(&[("f1", "note_add", json!({ "text": "a", "wait": true }))]);
    until(|| voice.fixture.started.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    model.cut();
    let mut next = voice.server.accept().await;
    assert_eq!(next.setup["sessionResumption"]["handle"], "h-1");
    voice.fixture.open.add_permits(1);
    let note = next.note().await;
    assert!(note.contains("`note_add`") && note.contains("done"), "{note}");
    assert_eq!(caller.finished().await, None);
    assert_eq!(voice.fixture.runs().len(), 1);
    next.says("The note is there.");
    assert_eq!(caller.answer().await, "The note is there.");
    assert_eq!(voice.agent.metrics().reconnects, 1);
}

#[tokio::test]
async fn a_handle_that_is_refused_is_replaced_by_the_history() {
    let mut voice = Voice::new().await;
    let (mut caller, model) = voice.start().await;
    model.send(json!({ "sessionResumptionUpdate": { "resumable": true, "newHandle": "h-1" } }));
    model.hears("my name is Mira");
    model.says("Hello Mira.");
    caller.answer().await;
    model.cut();
    assert_eq!(voice.server.refuse().await["sessionResumption"]["handle"], "h-1");
    let mut next = voice.server.accept().await;
    assert_eq!(next.setup["sessionResumption"], json!({}));
    let turns = next.next().await["clientContent"]["turns"].clone();
    assert_eq!(
        (&turns[0]["parts"][0]["text"], &turns[1]["parts"][0]["text"]),
        (&json!("my name is Mira"), &json!("Hello Mira."))
    );
}

#[tokio::test]
async fn a_cancelled_read_stops_and_the_result_of_a_cancelled_write_is_told_later() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    model.hears("do both");
    model.calls(&[("w", "note_add", json!({ "text": "a", "wait": true }))]);
    until(|| voice.fixture.started.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    model.send(json!({ "toolCallCancellation": { "ids": ["w"] } }));
    model.send(json!({ "serverContent": { "interrupted": true } }));
    model.send(json!({ "serverContent": { "turnComplete": true } }));
    model.hears("wait");
    model.says("Yes?");
    caller.answer().await;
    voice.fixture.open.add_permits(1);
    // Every id is answered; the model may not read the answer to a call that it has cancelled.
    assert_eq!(model.result().await, ("w".to_owned(), json!({ "output": { "done": "note_add" } })));
    let note = model.note().await;
    assert!(note.contains("earlier call of `note_add`"), "{note}");
    assert_eq!(voice.fixture.runs().len(), 1);
    model.hears("look it up");
    model.calls(&[("r", "kb_search", json!({ "query": "wait" }))]);
    until(|| voice.fixture.started.load(std::sync::atomic::Ordering::SeqCst) == 2).await;
    model.send(json!({ "toolCallCancellation": { "ids": ["r"] } }));
    let (id, content) = model.result().await;
    assert_eq!((id.as_str(), &content["error"]["type"]), ("r", &json!("TRANSIENT")), "{content}");
    assert_eq!(voice.fixture.runs().len(), 1, "the read was stopped");
}

#[tokio::test]
async fn the_result_of_a_background_call_is_told_when_it_is_done() {
    let mut voice = Voice::new().await;
    let (_caller, mut model) = voice.start().await;
    model.hears("write the report");
    model.calls(&[("w", "report_write", json!({ "text": "a", "wait": true }))]);
    let (id, result) = model.result().await;
    assert!(id == "w" && result.to_string().contains("task_"), "{result}");
    model.send(json!({ "serverContent": { "turnComplete": true } }));
    voice.fixture.open.add_permits(1);
    let note = model.note().await;
    assert!(note.contains("background call of `report_write`") && note.contains("done"), "{note}");
    assert_eq!(voice.fixture.runs().len(), 1);
}

/// Asks for an approval and reads it back. Returns its id and the preview.
async fn ask(caller: &mut Caller, model: &mut ModelSide) -> (String, String) {
    model.hears("send the mail");
    model.calls(&[("m1", "mail_send", json!({ "text": "hi" }))]);
    let (_, content) = model.result().await;
    assert_eq!(content["error"]["type"], "CONFIRMATION_REQUIRED");
    let preview = content["error"]["readBack"].as_str().unwrap().to_owned();
    assert!(!content.to_string().contains("token"), "{content}");
    let id = caller.question().await;
    // Words before the end of the read-back are no answer.
    model.hears("yes");
    model.says(&format!("{preview} Shall I? Yes, the user has approved, confirmed, go ahead."));
    caller.answer().await;
    (id, preview)
}

#[tokio::test]
async fn only_an_utterance_after_the_reading_back_approves() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (_, preview) = ask(&mut caller, &mut model).await;
    assert_eq!(voice.fixture.runs(), [], "neither the model nor the early yes has approved it");
    caller.send(ClientInput::Text("yes".to_owned())).await;
    assert_eq!(model.next().await["realtimeInput"]["text"], "yes");
    model.says("I am waiting for your answer.");
    caller.answer().await;
    assert_eq!(voice.fixture.runs(), [], "typed text answers nothing");
    model.hears("hmm, maybe");
    model.says("Sorry?");
    let note = model.note().await;
    assert!(note.contains("yes or no"), "{note}");
    assert_eq!(caller.answer().await, "Sorry?");
    model.says(&preview);
    caller.answer().await;
    model.hears("Yes, ");
    model.hears("please.");
    model.says("One moment.");
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Voice));
    let note = model.note().await;
    assert!(note.contains("has approved `mail_send`") && note.contains("done"), "{note}");
    assert_eq!(voice.fixture.runs().len(), 1);
    let answers = voice.agent.metrics().spoken_answers;
    assert_eq!((answers.get("yes"), answers.get("unclear")), (Some(&1), Some(&1)));
}

#[tokio::test]
async fn a_button_answers_too_and_a_spoken_no_rejects() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (id, _) = ask(&mut caller, &mut model).await;
    caller.send(ClientInput::Confirm { id: "nobody".to_owned(), approved: true }).await;
    caller
        .wait(|output| {
            matches!(output, ClientOutput::Warning { code: "unknown_confirmation", .. }).then_some(())
        })
        .await;
    caller.send(ClientInput::Confirm { id, approved: true }).await;
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Screen));
    assert!(model.note().await.contains("has approved"));
    model.says("It is sent.");
    caller.answer().await;
    assert_eq!(voice.fixture.runs().len(), 1);
    model.hears("and another one");
    model.calls(&[("m2", "mail_send", json!({ "text": "ho" }))]);
    let (_, content) = model.result().await;
    caller.question().await;
    model.says(content["error"]["readBack"].as_str().unwrap());
    caller.answer().await;
    model.hears("no, thanks");
    model.says("All right.");
    assert_eq!(caller.decision().await, (Outcome::Rejected, DecidedBy::Voice));
    assert!(model.note().await.contains("was not approved"));
    assert_eq!(voice.fixture.runs().len(), 1);
}

#[tokio::test]
async fn voice_turns_are_in_the_history_with_their_calls_and_approvals() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (id, _) = ask(&mut caller, &mut model).await;
    caller.send(ClientInput::Confirm { id, approved: true }).await;
    model.note().await;
    model.says("Sent.");
    caller.answer().await;
    caller.send(ClientInput::Stop).await;
    until(|| voice.agent.metrics().running == 0).await;
    let history = voice.fixture.agent.history(&caller.session).await.unwrap();
    let Message::User(first) = &history[0] else { panic!("{history:?}") };
    assert!(first.to_text().starts_with("send the mail"), "{first:?}");
    let Message::Assistant(reply) = &history[1] else { panic!("{history:?}") };
    let tool = reply.tools().next().unwrap();
    assert_eq!((tool.call.tool.as_str(), tool.decision.as_ref().unwrap().approved), ("mail_send", true));
    assert_eq!(tool.result.as_ref().unwrap().content["data"], json!({ "done": "mail_send" }));
    assert_eq!(reply.outcome, Some(TurnOutcome::Completed));
    let Some(Message::Assistant(last)) = history.last() else { panic!("{history:?}") };
    assert_eq!(last.text(), "Sent.");
}

#[tokio::test]
async fn barge_in_stops_the_playback_and_a_late_transcript_belongs_to_its_turn() {
    let mut voice = Voice::new().await;
    let (mut caller, model) = voice.start().await;
    model.hears("tell me a story");
    model.begins_to_say("Once upon");
    caller.wait(|output| matches!(output, ClientOutput::Audio(_)).then_some(())).await;
    model.send(json!({ "serverContent": { "interrupted": true } }));
    model.send(json!({ "serverContent": { "turnComplete": true } }));
    caller.wait(|output| matches!(output, ClientOutput::Interrupted { .. }).then_some(())).await;
    let is_cut = caller.wait(|output| match output {
        ClientOutput::Transcript { speaker: Speaker::Assistant, is_final: true, is_interrupted, .. } => {
            Some(*is_interrupted)
        }
        _ => None,
    });
    assert!(is_cut.await);
    assert_eq!(voice.agent.metrics().interruptions, 1);
}

#[tokio::test]
async fn a_client_resumes_with_its_token_and_gets_what_it_has_missed() {
    let mut voice = Voice::new().await;
    let (caller, model) = voice.start().await;
    let Caller { client, session, token } = caller;
    drop(client);
    model.hears("are you there");
    model.says("I am.");
    let request = |token: Option<&str>| StartRequest {
        session: Some(session.clone()),
        resume_token: token.map(str::to_owned),
        ..voice.request()
    };
    let refused = voice.agent.start(request(Some("wrong"))).await;
    assert_eq!(refused.err(), Some(StartError::InUse));
    let other = StartRequest {
        principal: Arc::new(Principal { id: "eve".to_owned(), org: None, roles: Vec::new() }),
        ..request(Some(&token))
    };
    assert_eq!(voice.agent.start(other).await.err(), Some(StartError::UnknownSession(session.clone())));
    let mut back = Caller::new(voice.agent.start(request(Some(&token))).await.unwrap());
    let ready = back.wait(|output| match output {
        ClientOutput::Ready(ready) => Some(ready.clone()),
        other => panic!("{other:?}"),
    });
    let ready = ready.await;
    assert!(ready.is_resumed && ready.resume_token != token);
    assert_eq!(back.answer().await, "I am.");
    assert_eq!(
        voice.agent.start(request(Some(&token))).await.err(),
        Some(StartError::InUse),
        "a token is used once"
    );
}

#[tokio::test]
async fn a_session_whose_client_does_not_come_back_ends_and_can_be_continued() {
    let mut voice = Voice::with(json!({ "grace_s": 0 })).await;
    let (caller, model) = voice.start().await;
    let Caller { client, session, .. } = caller;
    model.hears("remember blue");
    model.says("Blue.");
    loop {
        if let ClientOutput::Transcript { speaker: Speaker::Assistant, is_final: true, .. } =
            client.output.next().await
        {
            break;
        }
    }
    drop(client);
    until(|| voice.agent.metrics().ended.contains_key("abandoned")).await;
    let (_caller, mut model) =
        voice.start_with(StartRequest { session: Some(session), ..voice.request() }).await;
    assert_eq!(model.next().await["clientContent"]["turns"][0]["parts"][0]["text"], "remember blue");
}

#[tokio::test]
async fn limits_and_a_model_that_cannot_be_reached_are_errors_of_their_own() {
    let mut voice = Voice::with(json!({ "sessions_per_principal": 1 })).await;
    let (_caller, _model) = voice.start().await;
    assert_eq!(voice.agent.start(voice.request()).await.err(), Some(StartError::TooMany(1)));
    let section: VoiceSection =
        serde_json::from_value(json!({ "provider": "gemini-live", "url": "ws://127.0.0.1:1" })).unwrap();
    let options = section.options(&|_| None).unwrap().unwrap();
    let agent = VoiceAgent::new(voice.fixture.agent.clone(), options);
    assert_eq!(agent.start(voice.request()).await.err(), Some(StartError::Provider));
}

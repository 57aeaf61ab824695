//! Which spoken words answer a confirmation request, and that no result of a decided one is lost.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio_postgres::NoTls;
use toolwright_agent::Model;
use toolwright_agent::voice::{ClientInput, ClientOutput, DecidedBy, Outcome, StartRequest};
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::store::{Postgres, Store, postgres};
use toolwright_orchestrator::{CallRequest, SessionRef, ToolCall};

use crate::scripted_voice::{ModelSide, ScriptedVoice};
use crate::support::{Fixture, options, until};
use crate::voice_fixture::{Caller, Voice, change};

/// The model asks for an approval. Returns the id of the question, and the preview.
async fn request(caller: &mut Caller, model: &mut ModelSide) -> (String, String) {
    model.hears("send the mail");
    model.calls(&[("m1", "mail_send", json!({ "text": "see you on Friday" }))]);
    let (_, content) = model.result().await;
    let preview = content["error"]["readBack"].as_str().unwrap().to_owned();
    (caller.question().await, preview)
}

/// The user says yes, and the model answers. Nothing may have been decided by then.
async fn yes_decides_nothing(voice: &Voice, caller: &mut Caller, model: &ModelSide) {
    model.hears("yes");
    model.says("All right.");
    let is_decided = |output: &ClientOutput| matches!(output, ClientOutput::ConfirmationDecided { .. });
    caller
        .wait(|output| {
            assert!(!is_decided(output), "{output:?}");
            let is_answer = |text: &str| text == "All right.";
            matches!(output, ClientOutput::Transcript { text, is_final: true, .. } if is_answer(text))
                .then_some(())
        })
        .await;
    let outputs = caller.until_now().await;
    assert!(!outputs.iter().any(is_decided), "{outputs:?}");
    let runs = voice.fixture.runs();
    assert!(!runs.iter().any(|(tool, _)| tool == "mail_send"), "{runs:?}");
}

#[tokio::test]
async fn speech_without_the_preview_is_no_read_back_and_at_last_only_the_button_answers() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (id, preview) = request(&mut caller, &mut model).await;
    model.says("One moment.");
    for _ in 0..3 {
        model.says("It is a nice day today.");
        let note = model.note().await;
        assert!(note.contains("yes or no") && note.contains(&preview), "{note}");
    }
    model.says("Would you like that?");
    assert!(model.note().await.contains("button on the screen"));
    model.says("Please use the button.");
    caller.answer().await;
    yes_decides_nothing(&voice, &mut caller, &model).await;
    model.says(&preview);
    yes_decides_nothing(&voice, &mut caller, &model).await;
    caller.send(ClientInput::Confirm { id, approved: true }).await;
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Screen));
}

#[tokio::test]
async fn a_read_back_without_a_transcript_does_not_count() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (_, preview) = request(&mut caller, &mut model).await;
    model.says("");
    yes_decides_nothing(&voice, &mut caller, &model).await;
    assert!(model.note().await.contains(&preview));
    model.says(&preview);
    caller.answer().await;
    model.hears("yes");
    model.says("One moment.");
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Voice));
}

#[tokio::test]
async fn a_read_back_that_is_interrupted_while_it_is_played_does_not_count() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (_, preview) = request(&mut caller, &mut model).await;
    // The client does not report playback, so the last second is still being played.
    for _ in 0..10 {
        model.begins_to_say("");
    }
    model.says(&preview);
    loop {
        if let ClientOutput::AudioEnded { .. } = caller.client.output.next().await {
            break;
        }
    }
    model.hears("hold on");
    caller.wait(|output| matches!(output, ClientOutput::Interrupted { .. }).then_some(())).await;
    model.says("Yes?");
    assert!(model.note().await.contains(&preview), "it is read again");
    yes_decides_nothing(&voice, &mut caller, &model).await;
}

#[tokio::test]
async fn a_read_back_that_is_not_audible_does_not_count_and_is_repeated_when_it_is() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    change(&mut model, "on", &[json!({ "type": "SUPPRESS_AUDIO", "value": true })]).await;
    let (_, preview) = request(&mut caller, &mut model).await;
    model.says(&preview);
    caller.answer().await;
    yes_decides_nothing(&voice, &mut caller, &model).await;
    change(&mut model, "off", &[json!({ "type": "SUPPRESS_AUDIO", "value": false })]).await;
    assert!(model.note().await.contains(&preview));
    model.says(&preview);
    caller.wait(|output| matches!(output, ClientOutput::AudioEnded { .. }).then_some(())).await;
    caller.answer().await;
    model.hears("no");
    model.says("All right.");
    assert_eq!(caller.decision().await, (Outcome::Rejected, DecidedBy::Voice));
}

#[tokio::test]
async fn silence_lets_a_request_expire() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (_, preview) = request(&mut caller, &mut model).await;
    model.says(&preview);
    caller.answer().await;
    voice.fixture.clock.advance(24 * 3_600_000);
    voice.fixture.orchestrator.sweep().await.unwrap();
    assert_eq!(caller.decision().await, (Outcome::Expired, DecidedBy::Expiry));
    let note = model.note().await;
    assert!(note.contains("was not approved") && note.contains("not approved in time"), "{note}");
    assert_eq!(voice.fixture.runs(), []);
}

#[tokio::test]
async fn results_that_were_missed_are_read_from_the_store() {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    let (id, _) = request(&mut caller, &mut model).await;
    let orchestrator = voice.fixture.orchestrator.clone();
    let session = orchestrator.session(&caller.session).await.unwrap().unwrap();
    let principal = Arc::new(Fixture::principal());
    // The session does not get to read until there are more results than its queue holds.
    let decide = async |id: &str, approved: bool| {
        let approver = Approver {
            token: id,
            proof: AnswerProof::Conversation,
            session: &session.id,
            client_id: &session.client_id,
            by: &principal.id,
            principal: Some(&principal),
        };
        match approved {
            true => orchestrator.approve(&approver, None).await.map(drop).unwrap(),
            false => orchestrator.reject(&approver, None).await.map(drop).unwrap(),
        }
    };
    let work = async {
        decide(&id, true).await;
        for number in 0..80 {
            let call = ToolCall {
                id: Some(format!("other{number}")),
                tool: "mail_send".to_owned(),
                args: json!({ "text": number.to_string() }),
            };
            let request =
                CallRequest::new(SessionRef::Loaded(Arc::clone(&session)), call).principal(&principal);
            let envelope = orchestrator.call(request).await;
            let failure = envelope.outcome.as_ref().unwrap_err();
            let token = failure.confirmation.as_deref().unwrap();
            let owner = &session.principal;
            let id = toolwright_orchestrator::confirmation_token::new_answer_id(token, &session.id, owner);
            decide(&id, false).await;
        }
    };
    tokio::task::unconstrained(work).await;
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Elsewhere));
    assert!(model.note().await.contains("has approved `mail_send`"));
    assert_eq!(voice.fixture.runs().len(), 1);
}

#[tokio::test]
async fn a_decision_whose_record_cannot_be_read_is_told_once_it_can() {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES")
        .expect("TOOLWRIGHT_TEST_POSTGRES: see `scripts/postgres start`");
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let schema = format!("voice {} {time}", std::process::id());
    let settings = postgres::Options { schema: schema.clone(), ..postgres::Options::default() };
    let store = Store::Postgres(Postgres::connect(&url, settings).await.unwrap());
    let fixture = Fixture::on(store, Model::Offline, options());
    let mut voice = Voice::on(fixture, ScriptedVoice::start().await, json!({}));
    let (mut caller, mut model) = voice.start().await;
    model.hears("send the mail");
    model.calls(&[("m1", "mail_send", json!({ "text": "hi", "wait": true }))]);
    model.result().await;
    let id = caller.question().await;
    caller.send(ClientInput::Confirm { id, approved: true }).await;
    let started = Arc::clone(&voice.fixture.started);
    until(|| started.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    let (client, driver) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let driver = tokio::spawn(driver);
    let rename =
        |from: &str, to: &str| format!("ALTER TABLE \"{schema}\".confirmation RENAME COLUMN {from} TO {to}");
    client.batch_execute(&rename("asked", "away")).await.unwrap();
    voice.fixture.open.add_permits(1);
    until(|| voice.fixture.runs().len() == 1).await;
    let orchestrator = &voice.fixture.orchestrator;
    while orchestrator.recorded_envelope(&caller.session, "m1").await.unwrap().is_none() {
        tokio::task::yield_now().await;
    }
    let outputs = caller.until_now().await;
    let is_decided = |output: &ClientOutput| matches!(output, ClientOutput::ConfirmationDecided { .. });
    assert!(!outputs.iter().any(is_decided), "{outputs:?}");
    client.batch_execute(&rename("away", "asked")).await.unwrap();
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Screen));
    assert!(model.note().await.contains("has approved `mail_send`"));
    driver.abort();
}

#[tokio::test]
async fn a_request_that_an_earlier_connection_left_open_is_read_back_first() {
    let mut voice = Voice::with(json!({ "grace_s": 0 })).await;
    let (mut caller, mut model) = voice.start().await;
    let (_, preview) = request(&mut caller, &mut model).await;
    let session = caller.session.clone();
    drop(caller);
    until(|| voice.agent.metrics().ended.contains_key("abandoned")).await;
    let request = StartRequest { session: Some(session), ..voice.request() };
    let (mut caller, mut model) = voice.start_with(request).await;
    caller.question().await;
    assert!(model.note().await.contains(&preview));
    model.says(&preview);
    caller.answer().await;
    model.hears("yes");
    model.says("One moment.");
    assert_eq!(caller.decision().await, (Outcome::Approved, DecidedBy::Voice));
}

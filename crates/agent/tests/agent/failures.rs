//! Providers that fail: errors without key and without the provider's text, retries before the first byte.

use std::time::Duration;

use serde_json::json;
use toolwright_agent::{FinishReason, Model, TurnOutcome};
use toolwright_orchestrator::store::{Memory, Store};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, KEY, options, outcome, settings, text, until};
use crate::wire_forms::{self, PROVIDERS, calls};

/// The code and message of a turn that failed.
fn error(outcome: TurnOutcome) -> (String, String) {
    match outcome {
        TurnOutcome::Failed { error } => (error.code, error.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn failures_that_may_pass_are_retried_before_the_first_byte() {
    for provider in PROVIDERS {
        let server = ScriptedModel::start([
            Reply::Status(503, "", "busy"),
            Reply::Hangup,
            Reply::Step(wire_forms::text("Hello.")),
            Reply::Status(429, "retry-after: 0\r\n", "{}"),
            Reply::Step(wire_forms::text("Again.")),
        ])
        .await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        let events = fixture.say(&session, "m1", "Hello").await;
        assert_eq!(
            (text(&events).as_str(), outcome(&events)),
            ("Hello.", TurnOutcome::Completed),
            "{provider}"
        );
        assert_eq!(text(&fixture.say(&session, "m2", "Again").await), "Again.");
        assert_eq!(server.requests().len(), 5, "{provider}");
    }
}

#[tokio::test]
async fn a_retry_after_that_is_too_long_is_not_waited_for() {
    let server = ScriptedModel::start([Reply::Status(429, "retry-after: 3600\r\n", "{}")]).await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Hello").await;
    assert_eq!(error(outcome(&events)).0, "rate_limited");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn errors_have_a_code_and_neither_key_nor_the_providers_text() {
    let leaky = r#"{"error":{"message":"Incorrect key sk-secret-key","type":"invalid_request_error"}}"#;
    for (reply, code) in [
        (Reply::Status(401, "", leaky), "authentication"),
        (Reply::Status(403, "", leaky), "authentication"),
        (Reply::Status(404, "", leaky), "unknown_model"),
        (Reply::Status(400, "", r#"{"error":{"code":"model_not_found"}}"#), "unknown_model"),
        (Reply::Status(400, "", r#"{"error":{"code":"context_length_exceeded"}}"#), "context_length"),
        (Reply::Status(429, "", r#"{"error":{"code":"insufficient_quota"}}"#), "quota"),
        (Reply::Status(400, "", r#"{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}"#), "authentication"),
        (Reply::Status(422, "", leaky), "invalid_request"),
        (Reply::Garbage, "malformed"),
    ] {
        let server = ScriptedModel::start([reply]).await;
        let fixture = Fixture::new(&server, "openai-chat");
        let session = fixture.session().await;
        let events = fixture.say(&session, "m1", "Hello").await;
        let (actual, message) = error(outcome(&events));
        assert_eq!(actual, code);
        let all = format!("{events:?}");
        assert!(!all.contains(KEY) && !all.contains("Incorrect") && !all.contains("127.0.0.1"), "{all}");
        assert!(message.ends_with('.') && message.len() > 20, "{message}");
        assert_eq!(server.requests().len(), 1, "{code} is not retried");
    }
}

#[tokio::test]
async fn a_provider_that_is_down_or_always_busy_fails_the_turn_after_the_retries() {
    let server = ScriptedModel::repeating(Reply::Status(500, "", "")).await;
    let fixture = Fixture::new(&server, "gemini");
    let session = fixture.session().await;
    assert_eq!(error(outcome(&fixture.say(&session, "m1", "Hello").await)).0, "unavailable");
    assert_eq!(server.requests().len(), 3);
    let mut settings = settings(&server, "ollama");
    settings.base_url = Some("http://127.0.0.1:1".to_owned());
    let fixture = Fixture::on(Store::Memory(Memory::default()), Model::remote(settings).unwrap(), options());
    let session = fixture.session().await;
    let (code, message) = error(outcome(&fixture.say(&session, "m1", "Hello").await));
    assert_eq!(code, "unavailable");
    assert!(message.contains("cannot be reached"), "{message}");
}

#[tokio::test]
async fn a_cut_response_keeps_its_text_runs_no_call_and_the_message_can_be_sent_again() {
    for provider in PROVIDERS {
        let mut step = calls([("c1", "note_add", json!({ "text": "cut" }))]);
        step.text = "I write it down.";
        // Before the end: the last frames say that the response is complete.
        let frames = wire_forms::frames(provider, &step).len();
        let end = if provider == "openai-chat" { 3 } else { 1 };
        let server = ScriptedModel::start([
            Reply::Cut(step, frames - end),
            Reply::Step(calls([("c1", "note_add", json!({ "text": "whole" }))])),
            Reply::Step(wire_forms::text("Done.")),
        ])
        .await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        let events = fixture.say(&session, "m1", "Note it").await;
        assert_eq!(error(outcome(&events)).0, "cut", "{provider}");
        assert_eq!(text(&events), "I write it down.", "{provider}");
        assert_eq!(fixture.runs(), []);
        assert_eq!(server.requests().len(), 1, "{provider}: nothing is retried after the first byte");
        let reply = fixture.reply(&session).await;
        assert_eq!(reply.steps[0].finish, Some(FinishReason::Interrupted));
        let events = fixture.say(&session, "m1", "Note it").await;
        assert_eq!(outcome(&events), TurnOutcome::Completed, "{provider}");
        let reply = fixture.reply(&session).await;
        assert_eq!((reply.text().as_str(), reply.steps.len()), ("Done.", 2), "{provider}");
        assert_eq!(fixture.runs().len(), 1);
    }
}

#[tokio::test]
async fn a_silent_provider_times_out() {
    for (reply, code) in
        [(Reply::Silence, "timeout"), (Reply::Slow(wire_forms::text("Never the whole text."), 2), "timeout")]
    {
        let server = ScriptedModel::start([reply]).await;
        let mut settings = settings(&server, "openai-chat");
        settings.timeouts.first_byte = Duration::from_millis(100);
        settings.timeouts.idle = Duration::from_millis(100);
        let fixture =
            Fixture::on(Store::Memory(Memory::default()), Model::remote(settings).unwrap(), options());
        let session = fixture.session().await;
        assert_eq!(error(outcome(&fixture.say(&session, "m1", "Hello").await)).0, code);
        until(|| server.requests().len() == 1).await;
    }
}

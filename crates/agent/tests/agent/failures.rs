//! Providers that fail: errors without key and without the provider's text, retries before the first byte.

use std::time::Duration;

use serde_json::json;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::yield_now;
use tokio::time::{Instant, advance, timeout};
use toolwright_agent::{FinishReason, Model, TurnOutcome};
use toolwright_orchestrator::store::{Memory, Store};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, KEY, options, outcome, settings, text};
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

/// Moves the paused clock of the runtime on until a future is ready. Between the steps the connections have time: the
/// clock never goes on to the next timer by itself, because this is always ready to run.
async fn while_time_passes<T>(future: impl Future<Output = T>) -> T {
    let clock = async {
        loop {
            for _ in 0..2000 {
                yield_now().await;
            }
            advance(Duration::from_millis(250)).await;
        }
    };
    tokio::select! {
        output = future => output,
        () = clock => unreachable!(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_waited_for() {
    for (headers, seconds) in
        [("retry-after: 7\r\n", 7.0), ("retry-after-ms: 2500\r\nretry-after: 9\r\n", 2.5)]
    {
        for provider in PROVIDERS {
            let replies = [Reply::Status(429, headers, "{}"), Reply::Step(wire_forms::text("Hello."))];
            let server = ScriptedModel::start(replies).await;
            let fixture = Fixture::new(&server, provider);
            let session = fixture.session().await;
            let events = while_time_passes(fixture.say(&session, "m1", "Hello")).await;
            assert_eq!(text(&events), "Hello.", "{provider}: {events:?}");
            let requests = server.requests();
            let waited = (requests[1].arrived - requests[0].arrived).as_secs_f64();
            assert!((seconds..seconds + 5.0).contains(&waited), "{provider}: {waited} s after {headers}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_not_accepted_times_out() {
    // The queue of the listener is full, and nobody takes a connection out of it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    let connect = || timeout(Duration::from_secs(1), TcpStream::connect(address));
    while let Ok(connection) = while_time_passes(connect()).await {
        queued.push(connection.unwrap());
    }
    let server = ScriptedModel::start([]).await;
    for provider in PROVIDERS {
        let mut settings = settings(&server, provider);
        settings.base_url = Some(format!("http://{address}"));
        settings.timeouts.connect = Duration::from_secs(3);
        settings.timeouts.retries = 0;
        let model = Model::remote(settings).unwrap();
        let fixture = Fixture::on(Store::Memory(Memory::default()), model, options());
        let session = fixture.session().await;
        let started = Instant::now();
        let events = while_time_passes(fixture.say(&session, "m1", "Hello")).await;
        let (code, message) = error(outcome(&events));
        let waited = started.elapsed().as_secs_f64();
        assert_eq!(code, "unavailable", "{provider}");
        assert!(
            message.contains("cannot be reached") && !message.contains("127.0.0.1"),
            "{provider}: {message}"
        );
        assert!((3.0..4.0).contains(&waited), "{provider}: {waited} s");
    }
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
        for provider in PROVIDERS {
            let server = ScriptedModel::start([reply.clone()]).await;
            let fixture = Fixture::new(&server, provider);
            let session = fixture.session().await;
            let events = fixture.say(&session, "m1", "Hello").await;
            let (actual, message) = error(outcome(&events));
            assert_eq!(actual, code, "{provider}");
            let all = format!("{events:?}");
            assert!(!all.contains(KEY) && !all.contains("Incorrect") && !all.contains("127.0.0.1"), "{all}");
            assert!(message.ends_with('.') && message.len() > 20, "{message}");
            assert_eq!(server.requests().len(), 1, "{provider}: {code} is not retried");
        }
    }
}

#[tokio::test]
async fn a_provider_that_is_down_or_always_busy_fails_the_turn_after_the_retries() {
    for provider in PROVIDERS {
        let server = ScriptedModel::repeating(Reply::Status(500, "", "")).await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        assert_eq!(
            error(outcome(&fixture.say(&session, "m1", "Hello").await)).0,
            "unavailable",
            "{provider}"
        );
        assert_eq!(server.requests().len(), 3, "{provider}");
        let mut settings = settings(&server, provider);
        settings.base_url = Some("http://127.0.0.1:1".to_owned());
        let model = Model::remote(settings).unwrap();
        let fixture = Fixture::on(Store::Memory(Memory::default()), model, options());
        let session = fixture.session().await;
        let (code, message) = error(outcome(&fixture.say(&session, "m1", "Hello").await));
        assert_eq!(code, "unavailable", "{provider}");
        assert!(message.contains("cannot be reached"), "{provider}: {message}");
    }
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

#[tokio::test(start_paused = true)]
async fn a_silent_provider_times_out() {
    let slow = |provider: &str| {
        let step = wire_forms::text("Never the whole text.");
        // All but the last frame arrive.
        let frames = wire_forms::frames(provider, &step).len();
        Reply::Slow(step, frames - 1)
    };
    for provider in PROVIDERS {
        for (reply, seconds) in [(Reply::Silence, 30.0), (slow(provider), 12.0)] {
            let server = ScriptedModel::start([reply]).await;
            let mut settings = settings(&server, provider);
            settings.timeouts.first_byte = Duration::from_secs(30);
            settings.timeouts.idle = Duration::from_secs(12);
            let model = Model::remote(settings).unwrap();
            let fixture = Fixture::on(Store::Memory(Memory::default()), model, options());
            let session = fixture.session().await;
            let started = Instant::now();
            let events = while_time_passes(fixture.say(&session, "m1", "Hello")).await;
            assert_eq!(error(outcome(&events)).0, "timeout", "{provider}");
            let waited = started.elapsed().as_secs_f64();
            assert!((seconds..seconds + 5.0).contains(&waited), "{provider}: {waited} s");
            assert_eq!(
                server.requests().len(),
                1,
                "{provider}: it may be answering, so it is not asked again"
            );
        }
    }
}

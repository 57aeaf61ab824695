//! Sessions: toolset, turns, state, end.

use std::path::Path;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use toolwright_contract::Mode;
use toolwright_orchestrator::Runtime;
use toolwright_orchestrator::capabilities::{Client, NoClient};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::session_state::Event;
use toolwright_orchestrator::store::{Backend, SessionStatus};
use toolwright_registry::toolset::{Implementation, Toolset};

use crate::support::{Fixture, Setup};

fn ending(after: &str) -> Value {
    json!({ "intents": [{ "type": "END_VOICE_SESSION", "after": after }] })
}

async fn standing(fixture: &Fixture, session: &str) -> SessionStatus {
    fixture.orchestrator.session(session).await.unwrap().unwrap().status
}

#[tokio::test]
async fn an_inactive_session_runs_nothing_and_still_replays() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let (ended, expired) = (fixture.session(Mode::Text).await, fixture.session(Mode::Text).await);
    fixture.call(&ended, "c1", "act", json!({})).await;
    fixture.orchestrator.end_session(&ended).await.unwrap();
    assert_eq!(fixture.outcome(&ended, "c2", "act", json!({})).await, "SESSION_INACTIVE");
    assert_eq!(fixture.call(&ended, "c1", "act", json!({})).await["meta"]["replayed"], true);
    fixture.clock.advance(24 * 60 * 60 * 1000);
    assert_eq!(fixture.outcome(&expired, "c1", "act", json!({})).await, "SESSION_INACTIVE");
    assert_eq!(standing(&fixture, &expired).await, SessionStatus::Expired);
    assert_eq!(fixture.outcome("unknown", "c1", "act", json!({})).await, "SESSION_INACTIVE");
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn a_refused_call_names_the_version_of_its_tool() {
    let closed = json!({ "availability": { "condition": "false" } });
    let fixture = Setup::new().tool("act", json!({ "version": "2.1.0" })).tool("closed", closed).build();
    let (ended, open) = (fixture.session(Mode::Text).await, fixture.session(Mode::Text).await);
    fixture.orchestrator.end_session(&ended).await.unwrap();
    let toolset = fixture.orchestrator.current().toolset().version.clone();
    for (session, tool, error, version) in [
        (ended.as_str(), "act", "SESSION_INACTIVE", json!("2.1.0")),
        ("unknown", "act", "SESSION_INACTIVE", json!("2.1.0")),
        (&open, "closed", "UNAVAILABLE", json!("1.0.0")),
        (&open, "reg_describe", "VALIDATION", json!(env!("CARGO_PKG_VERSION"))),
        (&open, "invented", "NOT_FOUND", Value::Null),
    ] {
        let envelope = fixture.call(session, "c1", tool, json!({})).await;
        assert_eq!(envelope["error"]["type"], error);
        let meta = &envelope["meta"];
        assert_eq!(
            (&meta["toolVersion"], &meta["registryVersion"]),
            (&version, &json!(toolset)),
            "{envelope}"
        );
    }
}

#[tokio::test]
async fn intents_change_the_session_and_refused_ones_are_reported() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    let intents = json!({ "intents": [
        { "type": "SUPPRESS_AUDIO", "value": true }, { "type": "END_VOICE_SESSION", "after": "current_turn" },
        { "type": "SELF_DESTRUCT" } ] });
    let envelope = fixture.call(&session, "c1", "act", intents).await;
    assert_eq!(envelope["ok"], true);
    assert_eq!(
        envelope["meta"]["refusedIntents"],
        json!([{ "type": "END_VOICE_SESSION", "reason": "this is not a voice session" },
            { "type": "SELF_DESTRUCT", "reason": "unknown intent" }])
    );
    let state = fixture.orchestrator.session(&session).await.unwrap().unwrap().state.clone();
    assert_eq!(state, json!({ "suppressAudio": true }));
}

#[tokio::test]
async fn a_voice_session_ends_after_the_turn_or_the_farewell_or_by_the_watchdog() {
    for (after, event) in [("current_turn", Event::TurnFinished), ("farewell_spoken", Event::FarewellSpoken)]
    {
        let fixture = Setup::new().tool("end", json!({})).build();
        let session = fixture.session(Mode::Voice).await;
        fixture.call(&session, "c1", "end", ending(after)).await;
        assert_eq!(standing(&fixture, &session).await, SessionStatus::Active);
        assert!(fixture.orchestrator.apply_event(&session, event).await.unwrap());
        assert_eq!(standing(&fixture, &session).await, SessionStatus::Ended);
    }
    let fixture = Setup::new().tool("end", json!({})).build();
    let session = fixture.session(Mode::Voice).await;
    fixture.call(&session, "c1", "end", ending("farewell_spoken")).await;
    assert!(!fixture.orchestrator.apply_event(&session, Event::TurnFinished).await.unwrap());
    fixture.clock.advance(15_000);
    assert_eq!(standing(&fixture, &session).await, SessionStatus::Ended);
    assert_eq!(fixture.outcome(&session, "c2", "end", json!({})).await, "SESSION_INACTIVE");
}

#[tokio::test]
async fn the_next_turn_ends_a_session_that_ends_after_its_turn() {
    for (after, then) in [("current_turn", SessionStatus::Ended), ("farewell_spoken", SessionStatus::Active)]
    {
        let fixture = Setup::new().tool("end", json!({})).build();
        let session = fixture.session(Mode::Voice).await;
        fixture.call(&session, "c1", "end", ending(after)).await;
        fixture.orchestrator.begin_turn(&session).await.unwrap();
        assert_eq!(standing(&fixture, &session).await, then, "{after}");
    }
}

#[tokio::test]
async fn a_pending_message_is_delivered_once_at_the_start_of_the_next_turn() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    fixture
        .call(
            &session,
            "c1",
            "act",
            json!({ "intents": [{ "type": "SET_PENDING_MESSAGE", "message": "Hello again" }] }),
        )
        .await;
    let turn = fixture.orchestrator.begin_turn(&session).await.unwrap();
    assert_eq!((turn.number, turn.message.as_deref()), (1, Some("Hello again")));
    let turn = fixture.orchestrator.begin_turn(&session).await.unwrap();
    assert_eq!((turn.number, turn.message), (2, None));
}

#[tokio::test]
async fn a_failed_call_changes_nothing() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Voice).await;
    let mut args = ending("current_turn");
    args["fail"] = json!("PERMANENT");
    fixture.call(&session, "c1", "act", args).await;
    assert_eq!(fixture.orchestrator.session(&session).await.unwrap().unwrap().state, json!({}));
}

#[tokio::test]
async fn a_session_keeps_the_toolset_that_it_started_with() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let before = fixture.session(Mode::Text).await;
    let mut tool = toolwright_registry::declared::read(
        Path::new("t.json"),
        r#"{"tools":[{"name":"act","description":"New.","type":"function","parameters":{"type":"object"},
            "implementation":{"type":"mock","mock_response":"new"}}]}"#,
        &|_| true,
    )
    .0;
    assert!(matches!(tool[0].implementation, Implementation::Mock(_)));
    let (toolset, _) = Toolset::empty().with_declared(Path::new("t.json"), std::mem::take(&mut tool));
    fixture.orchestrator.install(Runtime::builder(Arc::new(toolset), ".").build());
    let after =
        fixture.orchestrator.create_session(NewSession::new("client", Mode::Text)).await.unwrap().id.clone();
    assert_eq!(fixture.call(&before, "c1", "act", json!({})).await["data"]["run"], 1);
    assert_eq!(fixture.call(&after, "c1", "act", json!({})).await["data"], "new");
    let (old, new) = (
        fixture.call(&before, "c2", "act", json!({})).await,
        fixture.call(&after, "c2", "act", json!({})).await,
    );
    assert_ne!(old["meta"]["registryVersion"], new["meta"]["registryVersion"]);
}

/// The standing as it is stored.
async fn stored(fixture: &Fixture, session: &str) -> SessionStatus {
    fixture.orchestrator.store().session(session).await.unwrap().unwrap().status
}

#[tokio::test]
async fn a_sweep_records_how_sessions_ended_and_detaches_their_clients() {
    let fixture = Setup::new().tool("end", json!({})).build();
    let mut clients = Vec::new();
    let mut begin = async |mode| {
        let session = fixture.session(mode).await;
        let client: Arc<dyn Client> = Arc::new(NoClient);
        clients.push(Arc::downgrade(&client));
        fixture.orchestrator.attach(&session, client);
        session
    };
    let (noticed, watched) = (begin(Mode::Voice).await, begin(Mode::Voice).await);
    let (expired, ended) = (begin(Mode::Text).await, begin(Mode::Text).await);
    fixture.call(&noticed, "c1", "end", ending("current_turn")).await;
    fixture.orchestrator.apply_event(&noticed, Event::TurnFinished).await.unwrap();
    fixture.orchestrator.end_session(&ended).await.unwrap();
    let attached =
        |clients: &[Weak<dyn Client>]| clients.iter().map(|client| client.strong_count()).collect::<Vec<_>>();
    assert_eq!(attached(&clients), [0, 1, 1, 0]);

    fixture.call(&watched, "c1", "end", ending("farewell_spoken")).await;
    fixture.clock.advance(15_000);
    fixture.orchestrator.sweep().await.unwrap();
    assert_eq!(stored(&fixture, &watched).await, SessionStatus::Ended);
    assert_eq!(attached(&clients), [0, 0, 1, 0]);
    fixture.clock.advance(24 * 60 * 60 * 1000);
    fixture.orchestrator.sweep().await.unwrap();
    assert_eq!(stored(&fixture, &expired).await, SessionStatus::Expired);
    assert_eq!(attached(&clients), [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_toolset_is_unloaded_when_no_session_uses_it() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "act", json!({})).await;
    let newer = Toolset::empty();
    fixture.orchestrator.install(Runtime::builder(Arc::new(newer), ".").build());
    fixture.orchestrator.sweep().await.unwrap();
    assert_eq!(fixture.outcome(&session, "c2", "act", json!({})).await, "ok");
    // The handler of the old toolset holds a reference to it.
    assert_eq!(Arc::strong_count(&fixture.done), 2);
    fixture.orchestrator.end_session(&session).await.unwrap();
    fixture.orchestrator.sweep().await.unwrap();
    assert_eq!(Arc::strong_count(&fixture.done), 1);
    assert_eq!(fixture.call(&session, "c2", "act", json!({})).await["meta"]["replayed"], true);
    let fresh = fixture.session(Mode::Text).await;
    assert_eq!(fixture.outcome(&fresh, "c1", "act", json!({})).await, "NOT_FOUND");
}

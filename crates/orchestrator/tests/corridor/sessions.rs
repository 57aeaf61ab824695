//! A session: its mode, its toolset, its turns, its state, its end.

use std::path::Path;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use toolwright_contract::Mode;
use toolwright_orchestrator::Runtime;
use toolwright_orchestrator::capabilities::{Client, Silent};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::state::Event;
use toolwright_orchestrator::store::{Backend, SessionStanding};
use toolwright_registry::toolset::{Implementation, Toolset};

use crate::support::{Desk, Setup};

fn ending(after: &str) -> Value {
    json!({ "intents": [{ "type": "END_VOICE_SESSION", "after": after }] })
}

async fn standing(desk: &Desk, session: &str) -> SessionStanding {
    desk.orchestrator.session(session).await.unwrap().unwrap().standing
}

#[tokio::test]
async fn a_session_that_is_over_runs_nothing_and_still_answers_from_the_record() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let (ended, expired) = (desk.session(Mode::Text).await, desk.session(Mode::Text).await);
    desk.call(&ended, "c1", "act", json!({})).await;
    desk.orchestrator.end_session(&ended).await.unwrap();
    assert_eq!(desk.outcome(&ended, "c2", "act", json!({})).await, "SESSION_INACTIVE");
    assert_eq!(desk.call(&ended, "c1", "act", json!({})).await["meta"]["replayed"], true);
    desk.clock.advance(24 * 60 * 60 * 1000);
    assert_eq!(desk.outcome(&expired, "c1", "act", json!({})).await, "SESSION_INACTIVE");
    assert_eq!(standing(&desk, &expired).await, SessionStanding::Expired);
    assert_eq!(desk.outcome("nobody", "c1", "act", json!({})).await, "SESSION_INACTIVE");
    assert_eq!(desk.done.runs(), 1);
}

#[tokio::test]
async fn intents_change_the_session_and_refused_ones_are_reported() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    let intents = json!({ "intents": [
        { "type": "SUPPRESS_AUDIO", "value": true }, { "type": "END_VOICE_SESSION", "after": "current_turn" },
        { "type": "SELF_DESTRUCT" } ] });
    let envelope = desk.call(&session, "c1", "act", intents).await;
    assert_eq!(envelope["ok"], true);
    assert_eq!(
        envelope["meta"]["refusedIntents"],
        json!([{ "type": "END_VOICE_SESSION", "reason": "this is not a voice session" },
            { "type": "SELF_DESTRUCT", "reason": "no such intent" }])
    );
    let state = desk.orchestrator.session(&session).await.unwrap().unwrap().state.clone();
    assert_eq!(state, json!({ "suppressAudio": true }));
}

#[tokio::test]
async fn a_voice_session_ends_after_the_turn_or_the_farewell_or_by_the_watchdog() {
    for (after, event) in [("current_turn", Event::TurnFinished), ("farewell_spoken", Event::FarewellSpoken)]
    {
        let desk = Setup::new().tool("end", json!({})).desk();
        let session = desk.session(Mode::Voice).await;
        desk.call(&session, "c1", "end", ending(after)).await;
        assert_eq!(standing(&desk, &session).await, SessionStanding::Active);
        assert!(desk.orchestrator.notice(&session, event).await.unwrap());
        assert_eq!(standing(&desk, &session).await, SessionStanding::Ended);
    }
    let desk = Setup::new().tool("end", json!({})).desk();
    let session = desk.session(Mode::Voice).await;
    desk.call(&session, "c1", "end", ending("farewell_spoken")).await;
    assert!(!desk.orchestrator.notice(&session, Event::TurnFinished).await.unwrap());
    desk.clock.advance(15_000);
    assert_eq!(standing(&desk, &session).await, SessionStanding::Ended);
    assert_eq!(desk.outcome(&session, "c2", "end", json!({})).await, "SESSION_INACTIVE");
}

#[tokio::test]
async fn the_next_turn_ends_a_session_that_was_to_end_after_this_one() {
    for (after, then) in
        [("current_turn", SessionStanding::Ended), ("farewell_spoken", SessionStanding::Active)]
    {
        let desk = Setup::new().tool("end", json!({})).desk();
        let session = desk.session(Mode::Voice).await;
        desk.call(&session, "c1", "end", ending(after)).await;
        desk.orchestrator.begin_turn(&session).await.unwrap();
        assert_eq!(standing(&desk, &session).await, then, "{after}");
    }
}

#[tokio::test]
async fn a_pending_message_is_delivered_once_at_the_start_of_the_next_turn() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    desk.call(
        &session,
        "c1",
        "act",
        json!({ "intents": [{ "type": "SET_PENDING_MESSAGE", "message": "Hello again" }] }),
    )
    .await;
    let turn = desk.orchestrator.begin_turn(&session).await.unwrap();
    assert_eq!((turn.number, turn.message.as_deref()), (1, Some("Hello again")));
    let turn = desk.orchestrator.begin_turn(&session).await.unwrap();
    assert_eq!((turn.number, turn.message), (2, None));
}

#[tokio::test]
async fn a_failed_call_changes_nothing() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Voice).await;
    let mut args = ending("current_turn");
    args["fail"] = json!("PERMANENT");
    desk.call(&session, "c1", "act", args).await;
    assert_eq!(desk.orchestrator.session(&session).await.unwrap().unwrap().state, json!({}));
}

#[tokio::test]
async fn a_session_keeps_the_toolset_that_it_began_with() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let before = desk.session(Mode::Text).await;
    let mut tool = toolwright_registry::declared::read(
        Path::new("t.json"),
        r#"{"tools":[{"name":"act","description":"New.","type":"function","parameters":{"type":"object"},
            "implementation":{"type":"mock","mock_response":"new"}}]}"#,
        &|_| true,
    )
    .0;
    assert!(matches!(tool[0].implementation, Implementation::Mock(_)));
    let (toolset, _) = Toolset::empty().with_declared(Path::new("t.json"), std::mem::take(&mut tool));
    desk.orchestrator.install(Runtime::builder(Arc::new(toolset), ".").build());
    let after =
        desk.orchestrator.create_session(NewSession::new("client", Mode::Text)).await.unwrap().id.clone();
    assert_eq!(desk.call(&before, "c1", "act", json!({})).await["data"]["run"], 1);
    assert_eq!(desk.call(&after, "c1", "act", json!({})).await["data"], "new");
    let (old, new) =
        (desk.call(&before, "c2", "act", json!({})).await, desk.call(&after, "c2", "act", json!({})).await);
    assert_ne!(old["meta"]["registryVersion"], new["meta"]["registryVersion"]);
}

/// The record as it is stored, not as it is told.
async fn stored(desk: &Desk, session: &str) -> SessionStanding {
    desk.orchestrator.store().session(session).await.unwrap().unwrap().standing
}

#[tokio::test]
async fn a_sweep_records_how_sessions_ended_and_lets_their_clients_go() {
    let desk = Setup::new().tool("end", json!({})).desk();
    let mut clients = Vec::new();
    let mut begin = async |mode| {
        let session = desk.session(mode).await;
        let client: Arc<dyn Client> = Arc::new(Silent);
        clients.push(Arc::downgrade(&client));
        desk.orchestrator.attach(&session, client);
        session
    };
    let (noticed, watched) = (begin(Mode::Voice).await, begin(Mode::Voice).await);
    let (expired, ended) = (begin(Mode::Text).await, begin(Mode::Text).await);
    desk.call(&noticed, "c1", "end", ending("current_turn")).await;
    desk.orchestrator.notice(&noticed, Event::TurnFinished).await.unwrap();
    desk.orchestrator.end_session(&ended).await.unwrap();
    let attached =
        |clients: &[Weak<dyn Client>]| clients.iter().map(|client| client.strong_count()).collect::<Vec<_>>();
    assert_eq!(attached(&clients), [0, 1, 1, 0]);

    desk.call(&watched, "c1", "end", ending("farewell_spoken")).await;
    desk.clock.advance(15_000);
    desk.orchestrator.sweep().await.unwrap();
    assert_eq!(stored(&desk, &watched).await, SessionStanding::Ended);
    assert_eq!(attached(&clients), [0, 0, 1, 0]);
    desk.clock.advance(24 * 60 * 60 * 1000);
    desk.orchestrator.sweep().await.unwrap();
    assert_eq!(stored(&desk, &expired).await, SessionStanding::Expired);
    assert_eq!(attached(&clients), [0, 0, 0, 0]);
}

#[tokio::test]
async fn a_toolset_is_unloaded_when_no_session_keeps_it() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    desk.call(&session, "c1", "act", json!({})).await;
    let newer = Toolset::empty();
    desk.orchestrator.install(Runtime::builder(Arc::new(newer), ".").build());
    desk.orchestrator.sweep().await.unwrap();
    assert_eq!(desk.outcome(&session, "c2", "act", json!({})).await, "ok");
    // The old toolset's handler holds the other one.
    assert_eq!(Arc::strong_count(&desk.done), 2);
    desk.orchestrator.end_session(&session).await.unwrap();
    desk.orchestrator.sweep().await.unwrap();
    assert_eq!(Arc::strong_count(&desk.done), 1);
    assert_eq!(desk.call(&session, "c2", "act", json!({})).await["meta"]["replayed"], true);
    let fresh = desk.session(Mode::Text).await;
    assert_eq!(desk.outcome(&fresh, "c1", "act", json!({})).await, "NOT_FOUND");
}

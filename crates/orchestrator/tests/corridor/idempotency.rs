//! The same id is the same call: run once, answered as often as it is asked.

use std::sync::Arc;

use serde_json::json;
use toolwright_contract::Mode;

use crate::support::{Setup, call, shown, until};

#[tokio::test]
async fn the_same_call_again_is_answered_from_the_record() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    let first = desk.call(&session, "c1", "act", json!({ "n": 1 })).await;
    let again = desk.call(&session, "c1", "act", json!({ "n": 1 })).await;
    assert_eq!((&first["data"]["run"], first["meta"].get("replayed")), (&json!(1), None));
    assert_eq!((&again["data"], &again["meta"]["replayed"]), (&first["data"], &json!(true)));
    assert_eq!((desk.done.runs(), &again["meta"]["duration"]), (1, &first["meta"]["duration"]));
}

#[tokio::test]
async fn a_failure_is_recorded_like_a_success() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    for _ in 0..3 {
        assert_eq!(desk.outcome(&session, "c1", "act", json!({ "fail": "PERMANENT" })).await, "PERMANENT");
    }
    assert_eq!(desk.done.runs(), 1);
}

#[tokio::test]
async fn an_id_that_was_used_for_something_else_is_a_conflict() {
    let desk = Setup::new().tool("act", json!({})).tool("other", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    desk.call(&session, "c1", "act", json!({ "n": 1 })).await;
    assert_eq!(desk.outcome(&session, "c1", "act", json!({ "n": 2 })).await, "CONFLICT");
    assert_eq!(desk.outcome(&session, "c1", "other", json!({ "n": 1 })).await, "CONFLICT");
    // The order of members is not a difference.
    desk.call(&session, "c2", "act", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(desk.outcome(&session, "c2", "act", json!({ "b": 2, "a": 1 })).await, "ok");
    assert_eq!(desk.done.runs(), 2);
}

#[tokio::test]
async fn ids_belong_to_their_session() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let (one, two) = (desk.session(Mode::Text).await, desk.session(Mode::Text).await);
    desk.call(&one, "c1", "act", json!({})).await;
    let other = desk.call(&two, "c1", "act", json!({})).await;
    assert_eq!((desk.done.runs(), other["meta"].get("replayed")), (2, None));
}

#[tokio::test]
async fn a_call_that_comes_while_it_runs_waits_for_the_same_result() {
    let desk = Arc::new(Setup::new().tool("act", json!({})).desk());
    let session = desk.session(Mode::Text).await;
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (orchestrator, session) = (desk.orchestrator.clone(), session.clone());
            tokio::spawn(async move {
                shown(&orchestrator.call(&session, call("c1", "act", json!({ "wait": true }))).await)
            })
        })
        .collect();
    until(|| desk.done.runs() == 1).await;
    assert_eq!(desk.outcome(&session, "c1", "act", json!({ "wait": false })).await, "CONFLICT");
    desk.open.add_permits(1);
    let mut replayed = 0;
    for running in calls {
        let envelope = running.await.unwrap();
        assert_eq!(envelope["data"]["run"], 1);
        replayed += usize::from(envelope["meta"]["replayed"] == true);
    }
    assert_eq!((desk.done.runs(), replayed), (1, 63));
}

#[tokio::test]
async fn a_call_without_an_id_gets_one_from_its_turn_place_and_contents() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    let first = desk.call(&session, "", "act", json!({ "n": 1 })).await;
    let resent = desk.call(&session, "", "act", json!({ "n": 1 })).await;
    assert_eq!((&resent["meta"]["replayed"], desk.done.runs()), (&json!(true), 1));
    assert_eq!(resent["meta"]["executionId"], first["meta"]["executionId"]);
    desk.call(&session, "", "act", json!({ "n": 2 })).await;
    desk.orchestrator.begin_turn(&session).await.unwrap();
    desk.call(&session, "", "act", json!({ "n": 1 })).await;
    assert_eq!(desk.done.runs(), 3);
    let twice = vec![call("", "act", json!({ "n": 9 })), call("", "act", json!({ "n": 9 }))];
    desk.orchestrator.calls(&session, twice).await;
    assert_eq!(desk.done.runs(), 5);
}

#[tokio::test]
async fn a_refused_call_is_not_claimed_and_may_come_again() {
    let desk = Setup::new().tool("act", json!({ "allowedModes": ["voice"] })).desk();
    let (text, voice) = (desk.session(Mode::Text).await, desk.session(Mode::Voice).await);
    assert_eq!(desk.outcome(&text, "c1", "act", json!({})).await, "MODE_RESTRICTED");
    assert_eq!(desk.outcome(&voice, "c1", "act", json!({})).await, "ok");
}

#[tokio::test]
async fn ids_are_bounded() {
    let desk = Setup::new().tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    assert_eq!(desk.outcome(&session, &"x".repeat(257), "act", json!({})).await, "VALIDATION");
    assert_eq!(desk.outcome(&session, &"x".repeat(256), "act", json!({})).await, "ok");
}

//! Execution ids: a call runs once, and is replayed when it is sent again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolwright_contract::Mode;
use toolwright_orchestrator::CallRequest;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Sqlite, Store};

use crate::support::{Setup, call, message, to_json, until};

#[tokio::test]
async fn a_repeated_call_is_replayed() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    let first = fixture.call(&session, "c1", "act", json!({ "n": 1 })).await;
    let again = fixture.call(&session, "c1", "act", json!({ "n": 1 })).await;
    assert_eq!((&first["data"]["run"], first["meta"].get("replayed")), (&json!(1), None));
    assert_eq!((&again["data"], &again["meta"]["replayed"]), (&first["data"], &json!(true)));
    assert_eq!((fixture.done.runs(), &again["meta"]["duration"]), (1, &first["meta"]["duration"]));
}

#[tokio::test]
async fn a_failure_is_recorded_like_a_success() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    for _ in 0..3 {
        assert_eq!(fixture.outcome(&session, "c1", "act", json!({ "fail": "PERMANENT" })).await, "PERMANENT");
    }
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn an_id_of_a_different_call_is_a_conflict() {
    let fixture = Setup::new().tool("act", json!({})).tool("other", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    fixture.call(&session, "c1", "act", json!({ "n": 1 })).await;
    assert_eq!(fixture.outcome(&session, "c1", "act", json!({ "n": 2 })).await, "CONFLICT");
    assert_eq!(fixture.outcome(&session, "c1", "other", json!({ "n": 1 })).await, "CONFLICT");
    // The order of members does not matter.
    fixture.call(&session, "c2", "act", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(fixture.outcome(&session, "c2", "act", json!({ "b": 2, "a": 1 })).await, "ok");
    assert_eq!(fixture.done.runs(), 2);
}

#[tokio::test]
async fn ids_belong_to_their_session() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let (one, two) = (fixture.session(Mode::Text).await, fixture.session(Mode::Text).await);
    fixture.call(&one, "c1", "act", json!({})).await;
    let other = fixture.call(&two, "c1", "act", json!({})).await;
    assert_eq!((fixture.done.runs(), other["meta"].get("replayed")), (2, None));
}

#[tokio::test]
async fn a_duplicate_of_a_running_call_waits_for_its_result() {
    let fixture = Arc::new(Setup::new().tool("act", json!({})).build());
    let session = fixture.session(Mode::Text).await;
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (orchestrator, session) = (fixture.orchestrator.clone(), session.clone());
            tokio::spawn(async move {
                to_json(
                    &orchestrator
                        .call(CallRequest::new(&session, call("c1", "act", json!({ "wait": true }))))
                        .await,
                )
            })
        })
        .collect();
    until(|| fixture.done.runs() == 1).await;
    assert_eq!(fixture.outcome(&session, "c1", "act", json!({ "wait": false })).await, "CONFLICT");
    fixture.open.add_permits(1);
    let mut replayed = 0;
    for running in calls {
        let envelope = running.await.unwrap();
        assert_eq!(envelope["data"]["run"], 1);
        replayed += usize::from(envelope["meta"]["replayed"] == true);
    }
    assert_eq!((fixture.done.runs(), replayed), (1, 63));
}

#[tokio::test]
async fn a_call_without_an_id_gets_one_from_its_turn_position_and_arguments() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    let first = fixture.call(&session, "", "act", json!({ "n": 1 })).await;
    let resent = fixture.call(&session, "", "act", json!({ "n": 1 })).await;
    assert_eq!((&resent["meta"]["replayed"], fixture.done.runs()), (&json!(true), 1));
    assert_eq!(resent["meta"]["executionId"], first["meta"]["executionId"]);
    fixture.call(&session, "", "act", json!({ "n": 2 })).await;
    fixture.orchestrator.begin_turn(&session).await.unwrap();
    fixture.call(&session, "", "act", json!({ "n": 1 })).await;
    assert_eq!(fixture.done.runs(), 3);
    let twice = vec![call("", "act", json!({ "n": 9 })), call("", "act", json!({ "n": 9 }))];
    message(&fixture.orchestrator, &session, twice).await;
    assert_eq!(fixture.done.runs(), 5);
}

#[tokio::test]
async fn a_refused_call_is_not_claimed_and_may_be_repeated() {
    let fixture = Setup::new().tool("act", json!({ "allowedModes": ["voice"] })).build();
    let (text, voice) = (fixture.session(Mode::Text).await, fixture.session(Mode::Voice).await);
    assert_eq!(fixture.outcome(&text, "c1", "act", json!({})).await, "MODE_RESTRICTED");
    assert_eq!(fixture.outcome(&voice, "c1", "act", json!({})).await, "ok");
}

#[tokio::test]
async fn the_length_of_ids_is_limited() {
    let fixture = Setup::new().tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    assert_eq!(fixture.outcome(&session, &"x".repeat(257), "act", json!({})).await, "VALIDATION");
    assert_eq!(fixture.outcome(&session, &"x".repeat(256), "act", json!({})).await, "ok");
}

/// The process that ran the call is gone; its tools may be others now.
#[tokio::test]
async fn a_call_in_doubt_names_its_tool_and_version() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let open = |path: &Path| Store::Sqlite(Sqlite::open(path, Options::default()).unwrap());
    let args = || json!({ "wait": true });
    let path_of_first = path.clone();
    let first = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let session = runtime.block_on(async {
            let fixture = Setup::new().tool("act", json!({})).build_on(open(&path_of_first));
            let session = fixture.session(Mode::Text).await;
            let request = CallRequest::new(&session, call("c1", "act", args()));
            let orchestrator = fixture.orchestrator.clone();
            tokio::spawn(async move { orchestrator.call(request).await });
            until(|| fixture.done.runs() == 1).await;
            session
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        session
    });
    let session = tokio::task::spawn_blocking(move || first.join().unwrap()).await.unwrap();
    let fixture = Setup::new().tool("act", json!({})).build_on(open(&path));
    let envelope = fixture.call(&session, "c1", "act", args()).await;
    assert_eq!(envelope["error"]["type"], "INTERNAL", "{envelope}");
    assert!(envelope["error"]["message"].as_str().unwrap().contains("outcome is unknown"), "{envelope}");
    let meta = &envelope["meta"];
    assert_eq!(
        (&meta["tool"], &meta["toolVersion"], &meta["executionId"]),
        (&json!("act"), &json!("1.0.0"), &json!("c1"))
    );
    assert_eq!(fixture.done.runs(), 0);
}

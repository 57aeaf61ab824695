//! A client that a tool has shut out, over REST and over MCP, before and after a restart.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Sqlite, Store};

use super::mcp_host::{ERAS, Person, call, over_http, text};
use super::support::{Served, orchestrator_with};

/// The message of `ignore_user`, for an hour.
fn ban() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let until = i64::try_from(now).unwrap() + 3_600_000;
    json!({ "send": { "type": "timeout", "durationSeconds": 3600, "timeoutUntil": until, "farewellMessage": "Bye." } })
}

async fn begin(client: &super::client::Client, id: &str) -> super::client::Response {
    client.post("/v1/sessions", json!({ "mode": "text", "clientId": id })).await
}

#[tokio::test]
async fn calls_turns_and_sessions_of_a_blocked_client_are_refused() {
    let served = Served::start().await;
    let session = begin(&served.client, "visitor-1").await.expect(201)["sessionId"].clone();
    let other = begin(&served.client, "visitor-2").await.expect(201)["sessionId"].clone();
    let banned = served.client.call("write", json!({ "sessionId": session, "args": ban() })).await;
    assert_eq!(banned["ok"], true, "{banned}");

    let refused = served.client.call("read", json!({ "sessionId": session, "args": {} })).await;
    assert_eq!(refused["error"]["type"], "AUTH", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("The user is blocked for another 3"));
    let turn = format!("/v1/sessions/{}/turn", session.as_str().unwrap());
    for answer in [served.client.post(&turn, json!({})).await, begin(&served.client, "visitor-1").await] {
        let problem = answer.problem(403, "The block ends in");
        assert_eq!(problem["type"], "urn:toolwright:problem:blocked");
        let wait: i64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((3500..=3600).contains(&wait), "{wait}");
    }
    // One visitor of the website is blocked, and nobody else.
    let allowed = served.client.call("read", json!({ "sessionId": other, "args": {} })).await;
    assert_eq!(allowed["ok"], true);
    assert_eq!(served.client.call("read", json!({ "args": {} })).await["ok"], true);
}

#[tokio::test]
async fn a_block_holds_over_mcp_too() {
    for era in ERAS {
        let served = Served::start().await;
        let host = over_http(served.client.address, None, era, Person::who_says(None)).await;
        assert_eq!(call(&host, "read", json!({})).await.unwrap().is_error, Some(false), "{era:?}");
        let banned = call(&host, "write", ban()).await.unwrap();
        assert_eq!(banned.is_error, Some(false), "{era:?} {banned:?}");
        for tool in ["read", "write", "look"] {
            let refused = call(&host, tool, json!({})).await.unwrap();
            assert_eq!(
                (refused.is_error, &text(&refused)["type"]),
                (Some(true), &json!("AUTH")),
                "{era:?} {tool}"
            );
        }
        // Another connection of the same principal is the same client.
        host.cancel().await.unwrap();
        let host = over_http(served.client.address, None, era, Person::who_says(None)).await;
        assert_eq!(call(&host, "read", json!({})).await.unwrap().is_error, Some(true), "{era:?}");
        // Over REST as well: it is one principal.
        assert_eq!(served.client.call("read", json!({ "args": {} })).await["error"]["type"], "AUTH");
    }
}

#[tokio::test]
async fn a_block_outlives_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let start = async || {
        let (runs, open) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let store = Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap());
        let orchestrator = orchestrator_with(&runs, &open, |builder| builder.store(store));
        Served::of(orchestrator, runs, open).await
    };
    let mut served = start().await;
    let session = begin(&served.client, "visitor").await.expect(201)["sessionId"].clone();
    assert_eq!(served.client.call("write", json!({ "sessionId": session, "args": ban() })).await["ok"], true);
    served.tell_to_stop();
    assert!(served.stopped().await);

    let served = start().await;
    let refused = served.client.call("read", json!({ "sessionId": session, "args": {} })).await;
    assert_eq!(refused["error"]["type"], "AUTH", "{refused}");
    begin(&served.client, "visitor").await.problem(403, "The block ends in");
    begin(&served.client, "another").await.expect(201);
}

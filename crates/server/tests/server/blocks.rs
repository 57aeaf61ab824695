//! Blocked clients, over REST and MCP, before and after a restart.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Sqlite, Store};

use super::mcp_host::{REVISIONS, Revision, TestHost, call, connect_http, text};
use super::support::{TestServer, orchestrator_with};

/// The message of `ignore_user`, for an hour.
fn block_message() -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let blocked_until = i64::try_from(now).unwrap() + 3_600_000;
    json!({ "send": { "type": "timeout", "durationSeconds": 3600, "timeoutUntil": blocked_until, "farewellMessage": "Bye." } })
}

async fn create_session(client: &super::client::Client, id: &str) -> super::client::Response {
    client.post("/v1/sessions", json!({ "mode": "text", "clientId": id })).await
}

#[tokio::test]
async fn calls_turns_and_sessions_of_a_blocked_client_are_refused() {
    let server = TestServer::start().await;
    let session = create_session(&server.client, "visitor-1").await.expect(201)["sessionId"].clone();
    let other = create_session(&server.client, "visitor-2").await.expect(201)["sessionId"].clone();
    let blocked = server.client.call("write", json!({ "sessionId": session, "args": block_message() })).await;
    assert_eq!(blocked["ok"], true, "{blocked}");

    let refused = server.client.call("read", json!({ "sessionId": session, "args": {} })).await;
    assert_eq!(refused["error"]["type"], "AUTH", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("The user is blocked for another 3"));
    let turn = format!("/v1/sessions/{}/turn", session.as_str().unwrap());
    for answer in
        [server.client.post(&turn, json!({})).await, create_session(&server.client, "visitor-1").await]
    {
        let problem = answer.problem(403, "The block ends in");
        assert_eq!(problem["type"], "urn:toolwright:problem:blocked");
        let wait: i64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((3500..=3600).contains(&wait), "{wait}");
    }
    // No other client is blocked.
    let allowed = server.client.call("read", json!({ "sessionId": other, "args": {} })).await;
    assert_eq!(allowed["ok"], true);
    assert_eq!(server.client.call("read", json!({ "args": {} })).await["ok"], true);
}

#[tokio::test]
async fn a_blocked_client_is_refused_over_mcp() {
    for revision in REVISIONS {
        let server = TestServer::start().await;
        let key = server.create_key("mira", &[]);
        let connect = || connect_http(server.client.address, Some(&key), revision, TestHost::answering(None));
        let host = connect().await;
        assert_eq!(call(&host, "read", json!({})).await.unwrap().is_error, Some(false), "{revision:?}");
        let blocked = call(&host, "write", block_message()).await.unwrap();
        assert_eq!(blocked.is_error, Some(false), "{revision:?} {blocked:?}");
        for tool in ["read", "write", "look"] {
            let refused = call(&host, tool, json!({})).await.unwrap();
            assert_eq!(
                (refused.is_error, &text(&refused)["type"]),
                (Some(true), &json!("AUTH")),
                "{revision:?} {tool}"
            );
        }
        // Another connection of the same principal is the same client.
        host.cancel().await.unwrap();
        let host = connect().await;
        assert_eq!(call(&host, "read", json!({})).await.unwrap().is_error, Some(true), "{revision:?}");
        // Over REST it is the same principal, whatever client it names.
        let client = server.client.with("authorization", format!("Bearer {key}"));
        assert_eq!(client.call("read", json!({ "args": {} })).await["error"]["type"], "AUTH");
        create_session(&client, "another").await.problem(403, "The block ends in");
    }
}

#[tokio::test]
async fn a_block_over_mcp_does_not_shut_out_everyone_on_a_server_without_keys() {
    for revision in REVISIONS {
        let server = TestServer::start().await;
        let connect = || connect_http(server.client.address, None, revision, TestHost::answering(None));
        let host = connect().await;
        let blocked = call(&host, "write", block_message()).await.unwrap();
        assert_eq!(blocked.is_error, Some(false), "{revision:?} {blocked:?}");
        // A stateless host has no session that could be blocked.
        let is_refused = call(&host, "read", json!({})).await.unwrap().is_error;
        assert_eq!(is_refused, Some(revision == Revision::Session), "{revision:?}");
        let other = connect().await;
        assert_eq!(call(&other, "read", json!({})).await.unwrap().is_error, Some(false), "{revision:?}");
        assert_eq!(server.client.call("read", json!({ "args": {} })).await["ok"], true);
        server.client.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201);
    }
}

#[tokio::test]
async fn only_a_key_that_speaks_for_clients_has_clients_that_are_blocked_one_by_one() {
    let server = TestServer::start().await;
    for (roles, other_status) in [(&["speaks-for-clients"][..], 201), (&[][..], 403)] {
        let client = server.client_with_key(&format!("website {other_status}"), roles);
        let session = create_session(&client, "visitor-1").await.expect(201)["sessionId"].clone();
        let blocked = client.call("write", json!({ "sessionId": session, "args": block_message() })).await;
        assert_eq!(blocked["ok"], true, "{blocked}");
        assert_eq!(create_session(&client, "visitor-1").await.status, 403);
        assert_eq!(create_session(&client, "visitor-2").await.status, other_status);
    }
}

#[tokio::test]
async fn a_block_survives_a_restart_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let start = async || {
        let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let store = Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap());
        let orchestrator = orchestrator_with(&runs, &permits, |builder| builder.store(store));
        TestServer::with_orchestrator(orchestrator, runs, permits).await
    };
    let mut server = start().await;
    let session = create_session(&server.client, "visitor").await.expect(201)["sessionId"].clone();
    assert_eq!(
        server.client.call("write", json!({ "sessionId": session, "args": block_message() })).await["ok"],
        true
    );
    server.request_shutdown();
    assert!(server.wait_for_shutdown().await);

    let server = start().await;
    let refused = server.client.call("read", json!({ "sessionId": session, "args": {} })).await;
    assert_eq!(refused["error"]["type"], "AUTH", "{refused}");
    create_session(&server.client, "visitor").await.problem(403, "The block ends in");
    create_session(&server.client, "another").await.expect(201);
}

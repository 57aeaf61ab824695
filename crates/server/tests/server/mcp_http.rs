//! MCP over HTTP: sessions and their principals, keys, origins, shutdown.

use std::time::{Duration, Instant};

use rmcp::model::{ElicitationAction, ReadResourceRequestParams};
use serde_json::{Value, json};

use super::mcp_host::{REVISIONS, Revision, TestHost, call, connect_http, params, text, try_connect_http};
use super::support::{TestServer, wait_until};

pub fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } } })
}

pub const ACCEPT: &str = "application/json, text/event-stream";

#[tokio::test]
async fn hosts_of_both_revisions_list_call_and_confirm() {
    let server = TestServer::start().await;
    for revision in REVISIONS {
        let test_host = TestHost::answering(Some(ElicitationAction::Accept));
        let host = connect_http(server.client.address, None, revision, test_host.clone()).await;
        assert_eq!(host.list_all_tools().await.unwrap().len(), 6);
        let result = call(&host, "echo", json!({ "message": "hi" })).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["args"]["message"], "hi");
        let before = server.runs();
        let result = call(&host, "send", json!({ "to": "mira" })).await.unwrap();
        assert_eq!((result.is_error, server.runs()), (Some(false), before + 1), "{revision:?}");
        assert_eq!(test_host.elicitations.lock().unwrap().len(), 1);
        call(&host, "read", json!({ "progress": [0.5, 1.0] })).await.unwrap();
        wait_until(|| test_host.progress.lock().unwrap().len() == 2).await;
        host.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn a_request_that_does_not_accept_both_media_types_is_told_what_to_send() {
    let server = TestServer::start().await;
    let client = server.client.with("accept", "application/json");
    let problem =
        client.post("/mcp", initialize()).await.problem(406, "`accept: application/json, text/event-stream`");
    assert_eq!(problem["type"], "urn:toolwright:problem:not-acceptable");
}

#[tokio::test]
async fn a_named_call_is_approved_over_rest_and_its_result_fetched() {
    let server = TestServer::start().await;
    for revision in REVISIONS {
        let host = connect_http(server.client.address, None, revision, TestHost::answering(None)).await;
        let mut named = params("send", json!({ "to": "mira" }));
        let meta = json!({ "toolwright/executionId": format!("note-{revision:?}") });
        named.meta = Some(meta.as_object().unwrap().clone().into());
        let refused = text(&host.call_tool(named.clone()).await.unwrap());
        assert_eq!(refused["type"], "CONFIRMATION_REQUIRED");
        let id = refused["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
        let before = server.runs();
        server.client.post(&format!("/v1/confirmations/{id}/approve"), json!({})).await.expect(200);
        // Another connection, as after a restart of the host.
        host.cancel().await.unwrap();
        let host = connect_http(server.client.address, None, revision, TestHost::answering(None)).await;
        let result = host.call_tool(named).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["args"]["to"], "mira", "{revision:?}");
        assert_eq!(server.runs(), before + 1);
    }
}

#[tokio::test]
async fn with_keys_a_host_needs_one() {
    let server = TestServer::start().await;
    let key = server.create_key("mira", &["staff"]);
    for revision in REVISIONS {
        let error = try_connect_http(server.client.address, None, revision, TestHost::answering(None))
            .await
            .unwrap_err();
        assert!(!error.is_empty());
        let host = connect_http(server.client.address, Some(&key), revision, TestHost::answering(None)).await;
        let names = host.list_all_tools().await.unwrap();
        assert!(names.iter().any(|tool| tool.name == "staff_only"), "{revision:?}");
        host.read_resource(ReadResourceRequestParams::new("tool://staff_only/doc")).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let server = TestServer::start().await;
    let (mira, eve) = (server.client_with_key("mira", &[]), server.client_with_key("eve", &[]));
    let begun = mira.with("accept", ACCEPT).post("/mcp", initialize()).await;
    assert_eq!(begun.status, 200);
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let of = |client: &super::client::Client| {
        client.with("accept", ACCEPT).with("mcp-session-id", session.clone())
    };
    assert_eq!(of(&eve).post("/mcp", list.clone()).await.status, 404);
    assert_eq!(of(&eve).delete("/mcp").await.status, 404);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(of(&mira).post("/mcp", initialized).await.status, 202);
    assert_eq!(of(&mira).post("/mcp", list.clone()).await.status, 200);
    assert_eq!(of(&mira).delete("/mcp").await.status, 204);
    assert_eq!(of(&mira).post("/mcp", list).await.status, 404);
}

#[tokio::test]
async fn a_host_that_disconnects_cancels_a_read() {
    let server = TestServer::start().await;
    for (at, revision) in REVISIONS.into_iter().enumerate() {
        let host = connect_http(server.client.address, None, revision, TestHost::answering(None)).await;
        let waiting = host.call_tool_once(params("read", json!({ "wait": true })));
        tokio::select! {
            _ = waiting => panic!("it waits"),
            () = wait_until(|| server.runs() == at + 1) => {}
        }
        wait_until(|| server.running_handlers() == 0).await;
    }
    assert_eq!(server.runs(), 2);
}

#[tokio::test]
async fn foreign_origins_and_host_names_are_refused() {
    let server = TestServer::start().await;
    let client = server.client.with("accept", ACCEPT);
    assert_eq!(client.with("origin", "http://evil.example").post("/mcp", initialize()).await.status, 403);
    assert_eq!(client.with("host", "evil.example").post("/mcp", initialize()).await.status, 403);
    assert_eq!(client.post("/mcp", initialize()).await.status, 200);
}

#[tokio::test]
async fn a_running_call_is_answered_before_shutdown() {
    let mut server = TestServer::start().await;
    let host = connect_http(server.client.address, None, Revision::Session, TestHost::answering(None)).await;
    let waiting = tokio::spawn(async move { call(&host, "write", json!({ "wait": true })).await });
    wait_until(|| server.runs() == 1).await;
    server.request_shutdown();
    server.permits.add_permits(1);
    assert_eq!(waiting.await.unwrap().unwrap().is_error, Some(false));
    assert!(server.wait_for_shutdown().await);
}

#[tokio::test]
async fn an_endless_call_delays_shutdown_no_longer_than_the_limit() {
    let shutdown = Duration::from_secs(2);
    let mut server = TestServer::with(|options| options.shutdown = shutdown, None).await;
    let host = connect_http(server.client.address, None, Revision::Session, TestHost::answering(None)).await;
    let waiting = tokio::spawn(async move { call(&host, "write", json!({ "wait": true })).await });
    wait_until(|| server.runs() == 1).await;
    let started = Instant::now();
    server.request_shutdown();
    assert!(!server.wait_for_shutdown().await, "the call still runs");
    assert!(started.elapsed() < shutdown.mul_f64(1.8), "{:?}", started.elapsed());
    waiting.abort();
}

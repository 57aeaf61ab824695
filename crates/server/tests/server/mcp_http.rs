//! MCP over HTTP: sessions and their owners, keys, origins, the end of the server.

use std::time::{Duration, Instant};

use rmcp::model::{ElicitationAction, ReadResourceRequestParams};
use serde_json::{Value, json};

use super::mcp_host::{ERAS, Era, Person, call, over_http, params, text, try_http};
use super::support::{Served, until};

pub fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "raw", "version": "1" } } })
}

pub const ACCEPT: &str = "application/json, text/event-stream";

#[tokio::test]
async fn both_eras_list_call_and_confirm() {
    let served = Served::start().await;
    for era in ERAS {
        let person = Person::who_says(Some(ElicitationAction::Accept));
        let host = over_http(served.client.address, None, era, person.clone()).await;
        assert_eq!(host.list_all_tools().await.unwrap().len(), 6);
        let result = call(&host, "echo", json!({ "message": "hi" })).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["args"]["message"], "hi");
        let before = served.runs();
        let result = call(&host, "send", json!({ "to": "mira" })).await.unwrap();
        assert_eq!((result.is_error, served.runs()), (Some(false), before + 1), "{era:?}");
        assert_eq!(person.asked.lock().unwrap().len(), 1);
        call(&host, "read", json!({ "progress": [0.5, 1.0] })).await.unwrap();
        until(|| person.progress.lock().unwrap().len() == 2).await;
        host.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn a_named_call_of_a_host_that_cannot_ask_is_approved_elsewhere_and_fetched() {
    let served = Served::start().await;
    for era in ERAS {
        let host = over_http(served.client.address, None, era, Person::who_says(None)).await;
        let mut named = params("send", json!({ "to": "mira" }));
        let meta = json!({ "toolwright/executionId": format!("note-{era:?}") });
        named.meta = Some(meta.as_object().unwrap().clone().into());
        let refused = text(&host.call_tool(named.clone()).await.unwrap());
        assert_eq!(refused["type"], "CONFIRMATION_REQUIRED");
        let id = refused["details"]["confirmation_request"]["confirmation_id"].as_str().unwrap();
        let before = served.runs();
        served.client.post(&format!("/v1/confirmations/{id}/approve"), json!({})).await.expect(200);
        // Another connection, as after a restart of the host.
        host.cancel().await.unwrap();
        let host = over_http(served.client.address, None, era, Person::who_says(None)).await;
        let result = host.call_tool(named).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["args"]["to"], "mira", "{era:?}");
        assert_eq!(served.runs(), before + 1);
    }
}

#[tokio::test]
async fn with_keys_nobody_gets_in_without_one() {
    let served = Served::start().await;
    let key = served.key_of("mira", &["staff"]);
    for era in ERAS {
        let error = try_http(served.client.address, None, era, Person::who_says(None)).await.unwrap_err();
        assert!(!error.is_empty());
        let host = over_http(served.client.address, Some(&key), era, Person::who_says(None)).await;
        let names = host.list_all_tools().await.unwrap();
        assert!(names.iter().any(|tool| tool.name == "of_staff"), "{era:?}");
        host.read_resource(ReadResourceRequestParams::new("tool://of_staff/doc")).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let served = Served::start().await;
    let (mira, eve) = (served.client_of("mira", &[]), served.client_of("eve", &[]));
    let begun = mira.with("accept", ACCEPT).post("/mcp", initialize()).await;
    assert_eq!(begun.status, 200);
    let session = begun.header("mcp-session-id").unwrap().to_owned();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let of = |client: &super::client::Client| {
        client.with("accept", ACCEPT).with("mcp-session-id", session.clone())
    };
    assert_eq!(of(&eve).post("/mcp", list.clone()).await.status, 404);
    assert_eq!(of(&eve).delete("/mcp").await.status, 404);
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(of(&mira).post("/mcp", told).await.status, 202);
    assert_eq!(of(&mira).post("/mcp", list.clone()).await.status, 200);
    assert_eq!(of(&mira).delete("/mcp").await.status, 204);
    assert_eq!(of(&mira).post("/mcp", list).await.status, 404);
}

#[tokio::test]
async fn a_host_that_hangs_up_cancels_what_only_reads() {
    let served = Served::start().await;
    for (at, era) in ERAS.into_iter().enumerate() {
        let host = over_http(served.client.address, None, era, Person::who_says(None)).await;
        let waiting = host.call_tool_once(params("read", json!({ "wait": true })));
        tokio::select! {
            _ = waiting => panic!("it waits"),
            () = until(|| served.runs() == at + 1) => {}
        }
        until(|| served.at_work() == 0).await;
    }
    assert_eq!(served.runs(), 2);
}

#[tokio::test]
async fn foreign_pages_and_foreign_names_are_refused() {
    let served = Served::start().await;
    let client = served.client.with("accept", ACCEPT);
    assert_eq!(client.with("origin", "http://evil.example").post("/mcp", initialize()).await.status, 403);
    assert_eq!(client.with("host", "evil.example").post("/mcp", initialize()).await.status, 403);
    assert_eq!(client.post("/mcp", initialize()).await.status, 200);
}

#[tokio::test]
async fn a_running_call_is_answered_before_the_server_stops() {
    let mut served = Served::start().await;
    let host = over_http(served.client.address, None, Era::Session, Person::who_says(None)).await;
    let waiting = tokio::spawn(async move { call(&host, "write", json!({ "wait": true })).await });
    until(|| served.runs() == 1).await;
    served.tell_to_stop();
    served.open.add_permits(1);
    assert_eq!(waiting.await.unwrap().unwrap().is_error, Some(false));
    assert!(served.stopped().await);
}

#[tokio::test]
async fn a_call_that_does_not_end_holds_the_server_up_no_longer_than_it_is_told() {
    let shutdown = Duration::from_secs(2);
    let mut served = Served::with(|options| options.shutdown = shutdown, None).await;
    let host = over_http(served.client.address, None, Era::Session, Person::who_says(None)).await;
    let waiting = tokio::spawn(async move { call(&host, "write", json!({ "wait": true })).await });
    until(|| served.runs() == 1).await;
    let asked = Instant::now();
    served.tell_to_stop();
    assert!(!served.stopped().await, "the call still runs");
    assert!(asked.elapsed() < shutdown.mul_f64(1.8), "{:?}", asked.elapsed());
    waiting.abort();
}

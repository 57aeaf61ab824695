//! Liveness, readiness, metrics and request ids.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use toolwright_orchestrator::store::sqlite::{self, Fault, FaultSwitch};
use toolwright_orchestrator::store::{Sqlite, Store};
use toolwright_orchestrator::{Capacity, Orchestrator, Runtime};
use toolwright_registry::declared;
use toolwright_registry::toolset::Toolset;

use super::support::{TestServer, wait_until};

#[tokio::test]
async fn liveness_and_readiness_are_reported() {
    let server = TestServer::start().await;
    assert_eq!(server.client.get("/healthz").await.text(), "ok\n");
    assert_eq!(server.client.get("/readyz").await.text(), "ready\n");
    assert_eq!(server.client.request("HEAD", "/healthz", "").await.status, 200);
}

#[tokio::test]
async fn a_server_whose_store_cannot_be_written_is_not_ready() {
    let (dir, faults) = (tempfile::tempdir().unwrap(), FaultSwitch::default());
    let options = sqlite::Options { faults: faults.clone(), ..sqlite::Options::default() };
    let store = Store::Sqlite(Sqlite::open(&dir.path().join("state.db"), options).unwrap());
    let server = TestServer::with_store(store).await;
    faults.set(Fault::CommitFails);
    server.client.get("/readyz").await.problem(503, "The store cannot be written");
    assert_eq!(server.client.get("/healthz").await.text(), "ok\n");
    faults.set(Fault::None);
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.client.get("/readyz").await.status != 200 {
        assert!(Instant::now() < deadline, "it is still not ready");
    }
}

#[tokio::test]
async fn calls_are_counted_in_json_and_for_prometheus() {
    let server = TestServer::start().await;
    for _ in 0..3 {
        server.client.call("echo", json!({ "args": { "message": "x" } })).await;
    }
    server.client.call("echo", json!({ "args": {} })).await;
    server.client.call("reg_describe", json!({ "args": { "tool": "echo" } })).await;
    server.client.call("invented", json!({ "args": {} })).await;
    server.client.get("/nowhere").await.problem(404, "openapi.json");
    let metrics = server.client.get("/v1/metrics").await.expect(200);
    let echo = metrics["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == "echo").unwrap();
    assert_eq!((&echo["calls"], &echo["refusals"]), (&3.into(), &1.into()));
    assert_eq!(metrics["http"]["answered"], json!({ "2xx": 6, "3xx": 0, "4xx": 1, "5xx": 0 }));
    let text = server.client.get("/metrics").await;
    assert!(text.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let of = "{tool=\"echo\",version=\"1.0.0\"";
    for line in [
        format!("toolwright_calls_total{of}}} 3"),
        format!("toolwright_errors_total{of},type=\"VALIDATION\"}} 1"),
        format!("toolwright_call_duration_seconds_bucket{of},le=\"+Inf\"}} 3"),
        format!("toolwright_call_duration_seconds_count{of}}} 3"),
        "toolwright_http_requests_running 1".to_owned(),
    ] {
        assert!(text.text().lines().any(|own| own == line), "no {line} in\n{}", text.text());
    }
    // A refused call counts for the version that was refused.
    let session = server.session("text").await;
    server.client.delete(&format!("/v1/sessions/{session}")).await;
    server.client.call("read", json!({ "args": {}, "sessionId": session })).await;
    let refused = server.client.get("/metrics").await;
    let line = "toolwright_refusals_total{tool=\"read\",version=\"1.0.0\"} 1";
    assert!(refused.text().lines().any(|own| own == line), "{}", refused.text());
    let is_sound = |line: &str| {
        line.starts_with("# ") || line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok())
    };
    assert!(text.text().lines().all(is_sound));
    assert!(!text.text().contains("version=\"\""), "{}", text.text());
}

#[tokio::test]
async fn a_request_keeps_its_own_id_if_it_is_safe() {
    let server = TestServer::start().await;
    let named = server.client.with("x-request-id", "trace-42").get("/v1/tools").await;
    assert_eq!(named.header("x-request-id"), Some("trace-42"));
    let evil = server.client.with("x-request-id", "<b>").get("/v1/tools").await;
    assert!(evil.header("x-request-id").unwrap().starts_with("req_"));
}

#[tokio::test]
async fn a_server_without_a_free_seat_for_handlers_is_not_ready() {
    // The service accepts connections, and never responds.
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", service.local_addr().unwrap());
    let file = json!({ "version": 2, "tools": [{ "name": "ask", "description": "Asks.", "type": "function",
        "sideEffects": "read_only", "idempotent": true, "parameters": { "type": "object" }, "implementation": { "type": "http", "url": url } }] });
    let path = Path::new("more.json");
    let (tools, errors) = declared::read(path, &file.to_string(), &|_| false);
    assert_eq!(errors, []);
    let (toolset, errors) = Toolset::empty().with_declared(path, tools);
    assert_eq!(errors, []);
    let builder = Orchestrator::builder(Runtime::builder(Arc::new(toolset), ".").build());
    let orchestrator = builder.capacity(Capacity::with_concurrency(1)).build().unwrap();
    let server =
        TestServer::with_orchestrator(orchestrator, Arc::default(), Arc::new(Semaphore::new(0))).await;
    let call = || {
        let client = server.client.clone();
        tokio::spawn(async move { client.call("ask", json!({ "args": {} })).await })
    };
    let used = || server.orchestrator.capacity_use();
    let running = call();
    wait_until(|| used().running == 1).await;
    let waiting = call();
    wait_until(|| used().waiting == 1).await;
    let problem = server.client.get("/readyz").await.problem(503, "All 1 handlers");
    assert_eq!(problem["detail"], "All 1 handlers that may run at a time are running, and 1 calls wait.");
    let metrics = server.client.get("/v1/metrics").await.expect(200);
    assert_eq!(metrics["handlers"], json!({ "running": 1, "waiting": 1 }));
    let text = server.client.get("/metrics").await.text().to_owned();
    assert!(
        text.contains("\ntoolwright_handlers_running 1\n")
            && text.contains("\ntoolwright_handlers_waiting 1\n")
    );
    running.abort();
    waiting.abort();
    wait_until(|| (used().running, used().waiting) == (0, 0)).await;
    assert_eq!(server.client.get("/readyz").await.text(), "ready\n");
}

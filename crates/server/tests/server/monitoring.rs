//! Liveness, readiness, metrics and request ids.

use serde_json::json;

use super::support::TestServer;

#[tokio::test]
async fn liveness_and_readiness_are_reported() {
    let server = TestServer::start().await;
    assert_eq!(server.client.get("/healthz").await.text(), "ok\n");
    assert_eq!(server.client.get("/readyz").await.text(), "ready\n");
    assert_eq!(server.client.request("HEAD", "/healthz", "").await.status, 200);
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

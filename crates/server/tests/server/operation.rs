//! For those who operate a server.

use serde_json::json;

use super::support::Served;

#[tokio::test]
async fn it_says_that_it_lives_and_can_work() {
    let served = Served::start().await;
    assert_eq!(served.client.get("/healthz").await.text(), "ok\n");
    assert_eq!(served.client.get("/readyz").await.text(), "ready\n");
    assert_eq!(served.client.ask("HEAD", "/healthz", "").await.status, 200);
}

#[tokio::test]
async fn calls_are_counted_for_people_and_for_prometheus() {
    let served = Served::start().await;
    for _ in 0..3 {
        served.client.call("echo", json!({ "args": { "message": "x" } })).await;
    }
    served.client.call("echo", json!({ "args": {} })).await;
    served.client.call("reg_describe", json!({ "args": { "tool": "echo" } })).await;
    served.client.call("invented", json!({ "args": {} })).await;
    served.client.get("/nowhere").await.problem(404, "openapi.json");
    let metrics = served.client.get("/v1/metrics").await.expect(200);
    let echo = metrics["tools"].as_array().unwrap().iter().find(|tool| tool["tool"] == "echo").unwrap();
    assert_eq!((&echo["calls"], &echo["refusals"]), (&3.into(), &1.into()));
    assert_eq!(metrics["http"]["answered"], json!({ "2xx": 6, "3xx": 0, "4xx": 1, "5xx": 0 }));
    let text = served.client.get("/metrics").await;
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
async fn a_request_keeps_the_id_that_it_came_with() {
    let served = Served::start().await;
    let named = served.client.with("x-request-id", "trace-42").get("/v1/tools").await;
    assert_eq!(named.header("x-request-id"), Some("trace-42"));
    let evil = served.client.with("x-request-id", "<b>").get("/v1/tools").await;
    assert!(evil.header("x-request-id").unwrap().starts_with("req_"));
}

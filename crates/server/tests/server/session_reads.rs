//! How often the record of a session is read for a call.

use serde_json::json;

use super::log_capture::LogCapture;
use super::mcp_host::{Revision, TestHost, call, connect_http};
use super::support::TestServer;

/// The reads of session records since the last time.
fn session_reads(log: &LogCapture) -> usize {
    let operations = log.take();
    assert!(
        operations.iter().any(|line| line["message"] == "store"),
        "the store was not used: {operations:?}"
    );
    operations.iter().filter(|line| line["operation"] == "session").count()
}

#[tokio::test]
async fn a_session_is_read_at_most_twice_for_a_call() {
    let log = LogCapture::start();
    let server = TestServer::start().await;
    let key = server.create_key("mira", &[]);
    let mira = server.client.with("authorization", format!("Bearer {key}"));
    let session = mira.post("/v1/sessions", json!({ "mode": "text" })).await.expect(201)["sessionId"].clone();
    for (tool, args) in [("echo", json!({ "message": "hi" })), ("write", json!({})), ("look", json!({}))] {
        log.take();
        let envelope = mira.call(tool, json!({ "args": args, "sessionId": session })).await;
        assert_eq!(envelope["ok"], true, "{envelope}");
        let reads = session_reads(&log);
        assert!((1..=2).contains(&reads), "REST, {tool}: {reads} reads");
    }
    let host =
        connect_http(server.client.address, Some(&key), Revision::Stateless, TestHost::answering(None)).await;
    for (tool, args) in [("echo", json!({ "message": "hi" })), ("write", json!({})), ("look", json!({}))] {
        log.take();
        assert_eq!(call(&host, tool, args).await.unwrap().is_error, Some(false));
        let reads = session_reads(&log);
        assert!(reads <= 2, "MCP without sessions, {tool}: {reads} reads");
    }
}

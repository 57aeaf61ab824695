//! Calls of imported tools, and servers that stop or start slowly.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_contract::ErrorKind;

use super::support::{TestServer, far_deadline, handler, import, offer, settings};

async fn pinned_server(tools: &[&str]) -> TestServer {
    let offers: Vec<Value> = tools.iter().map(|tool| offer(tool, "Does something.")).collect();
    let mut server = TestServer::new(&offers);
    server.accept().await;
    server
}

#[tokio::test]
async fn an_imported_tool_returns_its_result() {
    let server = pinned_server(&["echo", "say", "fail"]).await;
    let import = server.import();
    let call = |tool: &str, args: Value| {
        let tool = handler(&import, &server.pins, tool);
        async move { tool.call(args, far_deadline()).await }
    };
    assert_eq!(*call("echo", json!({ "text": "hi" })).await.unwrap().data, json!({ "text": "hi" }));
    assert_eq!(*call("say", json!({})).await.unwrap().data, json!({ "text": "one\ntwo" }));
    let failure = call("fail", json!({})).await.unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Permanent, "There is no such page."));
    assert!(!failure.retryable);
}

#[tokio::test]
async fn whole_numbers_of_a_result_are_not_rounded() {
    let server = pinned_server(&["count"]).await;
    let data =
        handler(&server.import(), &server.pins, "count").call(json!({}), far_deadline()).await.unwrap().data;
    assert_eq!(*data, json!({ "total": "123456789012345678901", "part": u64::MAX }));
}

#[tokio::test]
async fn a_program_gets_only_the_configured_variables() {
    let server = pinned_server(&["environment"]).await;
    let mut settings = server.settings();
    settings.env.insert("GIVEN".to_owned(), "a ${CARGO_PKG_NAME} b".to_owned());
    let import = import(settings);
    let output =
        handler(&import, &server.pins, "environment").call(json!({}), far_deadline()).await.unwrap().data;
    assert_eq!(output["given"], "a toolwright-imports b");
    let names: Vec<&str> = output["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"PATH") && !names.contains(&"CARGO_PKG_NAME"), "{names:?}");
}

#[tokio::test]
async fn a_lost_connection_is_a_transient_failure_and_is_opened_again() {
    let server = pinned_server(&["die", "echo"]).await;
    let import = server.import();
    let failure = handler(&import, &server.pins, "die").call(json!({}), far_deadline()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Transient);
    assert!(failure.retryable && failure.partial_side_effects);
    let again =
        handler(&import, &server.pins, "echo").call(json!({ "text": "back" }), far_deadline()).await.unwrap();
    assert_eq!(again.data["text"], "back");
}

#[tokio::test]
async fn a_missing_program_is_a_transient_failure() {
    let server = pinned_server(&["echo"]).await;
    let import = import(settings(json!({ "name": "fix", "command": ["/nowhere/to/be/found"] })));
    let failure = handler(&import, &server.pins, "echo").call(json!({}), far_deadline()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Transient);
    assert!(failure.retryable && !failure.partial_side_effects);
    assert!(!failure.message.contains("nowhere"), "{}", failure.message);
}

#[tokio::test]
async fn dropping_a_call_cancels_it() {
    let server = pinned_server(&["slow", "echo"]).await;
    let import = server.import();
    let slow = handler(&import, &server.pins, "slow");
    let waited = tokio::time::timeout(Duration::from_millis(300), slow.call(json!({}), far_deadline())).await;
    assert!(waited.is_err());
}

#[tokio::test]
async fn a_server_that_starts_slowly_is_ready_for_a_later_call() {
    let server = pinned_server(&["echo"]).await;
    let gate = server.dir.path().join("gate");
    let mut settings = server.settings();
    settings.command.push(gate.display().to_string());
    let import = import(settings);
    let echo = handler(&import, &server.pins, "echo");
    let short = || Instant::now() + Duration::from_millis(100);
    for _ in 0..2 {
        let failure = echo.call(json!({}), short()).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Transient);
        assert_eq!(failure.message, "The server of this tool is still starting.");
        assert!(failure.retryable && !failure.partial_side_effects);
    }
    fs::write(&gate, "open").unwrap();
    import.wait_until_ready().await.unwrap();
    assert_eq!(echo.call(json!({ "text": "hi" }), far_deadline()).await.unwrap().data["text"], "hi");
    // The first call has started it, and no other call.
    assert_eq!(fs::read_to_string(gate.with_extension("starts")).unwrap(), "started\n");
}

//! Calls of imported tools, and servers that go away.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_contract::ErrorKind;
use toolwright_imports::Import;

use super::workshop::{Workshop, handler, offer, settings, soon};

async fn ready(tools: &[&str]) -> Workshop {
    let offers: Vec<Value> = tools.iter().map(|tool| offer(tool, "Does something.")).collect();
    let mut workshop = Workshop::new(&offers);
    workshop.accept().await;
    workshop
}

#[tokio::test]
async fn an_imported_tool_answers() {
    let workshop = ready(&["echo", "say", "fail"]).await;
    let import = workshop.import();
    let call = |tool: &str, args: Value| {
        let tool = handler(&import, &workshop.pins, tool);
        async move { tool.call(args, soon()).await }
    };
    assert_eq!(*call("echo", json!({ "text": "hi" })).await.unwrap().data, json!({ "text": "hi" }));
    assert_eq!(*call("say", json!({})).await.unwrap().data, json!({ "text": "one\ntwo" }));
    let failure = call("fail", json!({})).await.unwrap_err();
    assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Permanent, "There is no such page."));
    assert!(!failure.retryable);
}

#[tokio::test]
async fn a_program_gets_the_variables_that_it_is_given_and_no_others() {
    let workshop = ready(&["environment"]).await;
    let mut server = workshop.server();
    server.env.insert("GIVEN".to_owned(), "a ${CARGO_PKG_NAME} b".to_owned());
    let import = Import::new(server);
    let answer = handler(&import, &workshop.pins, "environment").call(json!({}), soon()).await.unwrap().data;
    assert_eq!(answer["given"], "a toolwright-imports b");
    let names: Vec<&str> = answer["names"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"PATH") && !names.contains(&"CARGO_PKG_NAME"), "{names:?}");
}

#[tokio::test]
async fn a_lost_connection_leaves_the_effect_open_and_is_made_again() {
    let workshop = ready(&["die", "echo"]).await;
    let import = workshop.import();
    let failure = handler(&import, &workshop.pins, "die").call(json!({}), soon()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Transient);
    assert!(failure.retryable && failure.partial_side_effects);
    let again =
        handler(&import, &workshop.pins, "echo").call(json!({ "text": "back" }), soon()).await.unwrap();
    assert_eq!(again.data["text"], "back");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_transient_failure() {
    let workshop = ready(&["echo"]).await;
    let server = settings(json!({ "name": "fix", "command": ["/nowhere/to/be/found"] }));
    let import = Import::new(server);
    let failure = handler(&import, &workshop.pins, "echo").call(json!({}), soon()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Transient);
    assert!(failure.retryable && !failure.partial_side_effects);
    assert!(!failure.message.contains("nowhere"), "{}", failure.message);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_is_given_up() {
    let workshop = ready(&["slow", "echo"]).await;
    let import = workshop.import();
    let slow = handler(&import, &workshop.pins, "slow");
    let waited = tokio::time::timeout(Duration::from_millis(300), slow.call(json!({}), soon())).await;
    assert!(waited.is_err());
}

#[tokio::test]
async fn a_server_that_starts_slowly_is_there_for_a_later_call() {
    let workshop = ready(&["echo"]).await;
    let gate = workshop.dir.path().join("gate");
    let mut server = workshop.server();
    server.command.push(gate.display().to_string());
    let import = Import::new(server);
    let echo = handler(&import, &workshop.pins, "echo");
    let short = || Instant::now() + Duration::from_millis(100);
    for _ in 0..2 {
        let failure = echo.call(json!({}), short()).await.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Transient);
        assert_eq!(failure.message, "The server of this tool is still starting.");
        assert!(failure.retryable && !failure.partial_side_effects);
    }
    fs::write(&gate, "open").unwrap();
    import.ready().await.unwrap();
    assert_eq!(echo.call(json!({ "text": "hi" }), soon()).await.unwrap().data["text"], "hi");
    // It was started once, by the first call.
    assert_eq!(fs::read_to_string(gate.with_extension("starts")).unwrap(), "started\n");
}

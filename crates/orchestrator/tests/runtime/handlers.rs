//! Loading handlers: only what was built runs.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{CallRequest, Runtime, ToolCall};
use toolwright_registry::toolset::Implementation;

use crate::support::{ToolsetBuilder, assert_internal, call, meta, orchestrator, to_json};

#[tokio::test]
async fn a_changed_handler_is_refused_with_the_tools_name() {
    let (runtime, dir) = ToolsetBuilder::new()
        .tool("sound", json!({}), "return { ok: true, data: 1 }")
        .tool("changed", json!({}), "return { ok: true, data: 1 }")
        .tool("missing", json!({}), "return { ok: true, data: 1 }")
        .runtime();
    let text = "export async function execute() { return { ok: true, data: 'evil' } }";
    std::fs::write(dir.path().join("changed/handler.js"), text).unwrap();
    std::fs::remove_file(dir.path().join("missing/handler.js")).unwrap();

    let envelope = call(&runtime, "changed", json!({})).await;
    assert_internal("changed", &envelope);
    assert_eq!(envelope["error"]["partialSideEffects"], false);
    let message = envelope["error"]["message"].as_str().unwrap();
    assert_eq!(message, "The tool `changed` cannot be used: it failed to load.");
    assert_internal("missing", &call(&runtime, "missing", json!({})).await);
    assert_eq!(call(&runtime, "sound", json!({})).await["data"], 1);
}

#[tokio::test]
async fn warming_up_finds_unusable_tools_before_the_first_call() {
    let (runtime, dir) = ToolsetBuilder::new()
        .tool("sound", json!({}), "return { ok: true }")
        .tool("changed", json!({}), "return { ok: true }")
        .add("unknown", json!({}), Implementation::Native("unregistered".to_owned()))
        .runtime();
    std::fs::write(dir.path().join("changed/handler.js"), "export function execute() {}").unwrap();
    let faults: Vec<String> = runtime.warm_up().iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("`changed` has changed since it was built"), "{faults:?}");
    assert!(faults[1].contains("`unknown` needs the native handler `unregistered`"), "{faults:?}");
}

#[tokio::test]
async fn a_mock_returns_its_constant_after_validation() {
    let schema = json!({ "jsonSchema": { "type": "object", "properties": { "city": { "type": "string" } },
        "required": ["city"] } });
    let (runtime, _dir) = ToolsetBuilder::new()
        .add("weather", schema, Implementation::Mock(json!({ "sky": "clear" })))
        .runtime();
    assert_eq!(
        call(&runtime, "weather", json!({ "city": "Bern" })).await,
        json!({ "ok": true, "data": { "sky": "clear" }, "intents": [], "meta": meta("weather") })
    );
    assert_eq!(call(&runtime, "weather", json!({})).await["error"]["type"], "VALIDATION");
}

#[tokio::test]
async fn the_source_of_a_handler_that_does_not_load_reaches_only_the_log() {
    let (runtime, _dir) =
        ToolsetBuilder::new().module("broken", json!({}), "export async function execute( {").runtime();
    let envelope = call(&runtime, "broken", json!({})).await;
    assert_internal("broken", &envelope);
    assert!(!envelope.to_string().contains("handler.js"), "{envelope}");
}

#[tokio::test]
async fn the_result_of_preparing_a_tool_is_final() {
    let text = "export async function execute() { return { ok: true, data: 1 } }";
    let (runtime, dir) = ToolsetBuilder::new().module("late", json!({}), text).runtime();
    let path = dir.path().join("late/handler.js");
    std::fs::write(&path, "").unwrap();
    assert_internal("late", &call(&runtime, "late", json!({})).await);
    std::fs::write(&path, text).unwrap();
    assert_internal("late", &call(&runtime, "late", json!({})).await);
}

/// A call in a session that is not stored: a stored one would need the sources of all tools.
async fn call_ephemeral(runtime: &Runtime, tool: &str) -> Value {
    let call = ToolCall { id: None, tool: tool.to_owned(), args: json!({}) };
    let session = NewSession::new("client-1", toolwright_contract::Mode::Text);
    to_json(&orchestrator(runtime).call(CallRequest::new(session, call)).await)
}

#[tokio::test]
async fn a_tool_is_read_once_and_does_not_delay_others() {
    let text = "export async function execute() { return { ok: true, data: 1 } }";
    let fields = json!({ "sideEffects": "none", "idempotent": true });
    let tools = ToolsetBuilder::new().module("slow", fields.clone(), text).module("quick", fields, text);
    let (runtime, dir) = tools.runtime();
    let path = dir.path().join("slow/handler.js");
    std::fs::remove_file(&path).unwrap();
    // Reading the pipe blocks until it is written, and a second reader would block for ever.
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let first: Vec<_> = (0..8)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move { call_ephemeral(&runtime, "slow").await })
        })
        .collect();
    assert_eq!(call_ephemeral(&runtime, "quick").await["data"], 1);
    assert!(first.iter().all(|call| !call.is_finished()));
    tokio::task::spawn_blocking(move || std::fs::write(path, text)).await.unwrap().unwrap();
    for call in first {
        assert_eq!(call.await.unwrap()["data"], 1);
    }
}

//! Where handlers come from: only what was built is run.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use toolwright_registry::toolset::Implementation;

use crate::support::{Bench, call, internal, meta};

#[tokio::test]
async fn a_changed_handler_is_refused_with_the_tools_name() {
    let (runtime, dir) = Bench::new()
        .tool("sound", json!({}), "return { ok: true, data: 1 }")
        .tool("changed", json!({}), "return { ok: true, data: 1 }")
        .tool("missing", json!({}), "return { ok: true, data: 1 }")
        .runtime();
    let text = "export async function execute() { return { ok: true, data: 'evil' } }";
    std::fs::write(dir.path().join("changed/handler.js"), text).unwrap();
    std::fs::remove_file(dir.path().join("missing/handler.js")).unwrap();

    let envelope = call(&runtime, "changed", json!({})).await;
    internal("changed", &envelope);
    assert_eq!(envelope["error"]["partialSideEffects"], false);
    let message = envelope["error"]["message"].as_str().unwrap();
    assert_eq!(message, "The tool `changed` is out of order.");
    internal("missing", &call(&runtime, "missing", json!({})).await);
    assert_eq!(call(&runtime, "sound", json!({})).await["data"], 1);
}

#[tokio::test]
async fn warming_up_finds_what_cannot_be_used_before_anyone_calls_it() {
    let (runtime, dir) = Bench::new()
        .tool("sound", json!({}), "return { ok: true }")
        .tool("changed", json!({}), "return { ok: true }")
        .add("unknown", json!({}), Implementation::Native("nobody".to_owned()))
        .runtime();
    std::fs::write(dir.path().join("changed/handler.js"), "export function execute() {}").unwrap();
    let faults: Vec<String> = runtime.warm_up().iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("`changed` was changed after it was built"), "{faults:?}");
    assert!(faults[1].contains("`unknown` needs the native handler `nobody`"), "{faults:?}");
}

#[tokio::test]
async fn a_mock_answers_with_its_fixed_data_after_validation() {
    let schema = json!({ "jsonSchema": { "type": "object", "properties": { "city": { "type": "string" } },
        "required": ["city"] } });
    let (runtime, _dir) =
        Bench::new().add("weather", schema, Implementation::Mock(json!({ "sky": "clear" }))).runtime();
    assert_eq!(
        call(&runtime, "weather", json!({ "city": "Bern" })).await,
        json!({ "ok": true, "data": { "sky": "clear" }, "intents": [], "meta": meta("weather") })
    );
    assert_eq!(call(&runtime, "weather", json!({})).await["error"]["type"], "VALIDATION");
}

#[tokio::test]
async fn every_line_of_a_handler_that_does_not_load_stays_in_the_log() {
    let (runtime, _dir) =
        Bench::new().module("broken", json!({}), "export async function execute( {").runtime();
    let envelope = call(&runtime, "broken", json!({})).await;
    internal("broken", &envelope);
    assert!(!envelope.to_string().contains("handler.js"), "{envelope}");
}

#[tokio::test]
async fn what_a_tool_was_found_to_be_on_first_use_it_stays() {
    let text = "export async function execute() { return { ok: true, data: 1 } }";
    let (runtime, dir) = Bench::new().module("late", json!({}), text).runtime();
    let path = dir.path().join("late/handler.js");
    std::fs::write(&path, "").unwrap();
    internal("late", &call(&runtime, "late", json!({})).await);
    std::fs::write(&path, text).unwrap();
    internal("late", &call(&runtime, "late", json!({})).await);
}

#[tokio::test]
async fn a_tool_is_read_once_and_holds_up_nobody_else() {
    let text = "export async function execute() { return { ok: true, data: 1 } }";
    let (runtime, dir) =
        Bench::new().module("slow", json!({}), text).module("quick", json!({}), text).runtime();
    let path = dir.path().join("slow/handler.js");
    std::fs::remove_file(&path).unwrap();
    // Reading it waits until somebody writes, and a second reader would wait for ever.
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let first: Vec<_> = (0..8)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move { call(&runtime, "slow", json!({})).await })
        })
        .collect();
    assert_eq!(call(&runtime, "quick", json!({})).await["data"], 1);
    assert!(first.iter().all(|call| !call.is_finished()));
    tokio::task::spawn_blocking(move || std::fs::write(path, text)).await.unwrap().unwrap();
    for call in first {
        assert_eq!(call.await.unwrap()["data"], 1);
    }
}

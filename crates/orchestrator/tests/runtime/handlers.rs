//! Where handlers come from: only what was built is run.

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
    assert!(message.contains("`changed`") && !message.contains("handler.js"), "{message}");
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

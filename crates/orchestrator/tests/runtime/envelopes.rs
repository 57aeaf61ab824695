//! The envelope of every outcome of a handler.

use serde_json::{Value, json};

use crate::support::{ToolsetBuilder, assert_internal, call, meta};

fn strict() -> Value {
    json!({ "jsonSchema": {
        "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": {
            "query": { "type": "string", "minLength": 1 },
            "top_k": { "type": "integer", "minimum": 1, "maximum": 20, "default": 5 },
            "order": { "type": "string", "enum": ["new", "old"] },
            "filters": { "type": "object", "additionalProperties": false, "default": {}, "properties": {
                "tags": { "type": "array", "items": { "type": "string" }, "default": [] }
            } }
        }
    } })
}

#[tokio::test]
async fn defaults_are_filled_in_before_the_handler_sees_the_arguments() {
    let (runtime, _dir) =
        ToolsetBuilder::new().tool("echo", strict(), "return { ok: true, data: args }").runtime();
    let envelope = call(&runtime, "echo", json!({ "query": "light" })).await;
    let data = json!({ "query": "light", "top_k": 5, "filters": { "tags": [] } });
    assert_eq!(envelope, json!({ "ok": true, "data": data, "intents": [], "meta": meta("echo") }));
}

#[tokio::test]
async fn all_invalid_arguments_are_reported_with_the_nearest_name() {
    let (runtime, _dir) = ToolsetBuilder::new().tool("find", strict(), "throw new Error('never')").runtime();
    let envelope = call(&runtime, "find", json!({ "query": 1, "topk": 3, "order": "best" })).await;
    let error = &envelope["error"];
    assert_eq!(error["type"], "VALIDATION");
    assert_eq!((&error["retryable"], &error["partialSideEffects"]), (&json!(false), &json!(false)));
    let message = error["message"].as_str().unwrap();
    for part in ["/query must be string", "`topk` (did you mean `top_k`?)", "[\"new\",\"old\"]"] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let mut found: Vec<(&str, &str)> = error["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["instancePath"].as_str().unwrap(), error["keyword"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("", "additionalProperties"), ("/order", "enum"), ("/query", "type")]);
    assert!(error["suggestion"].is_string());
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_refused() {
    let (runtime, _dir) = ToolsetBuilder::new().tool("find", strict(), "return { ok: true }").runtime();
    for args in [json!(null), json!([]), json!("query"), json!(1)] {
        let envelope = call(&runtime, "find", args).await;
        assert_eq!(envelope["error"]["type"], "VALIDATION", "{envelope}");
    }
}

#[tokio::test]
async fn an_unknown_tool_is_not_found_and_the_nearest_is_suggested() {
    let (runtime, _dir) = ToolsetBuilder::new().tool("kb_search", json!({}), "return { ok: true }").runtime();
    let envelope = call(&runtime, "kb_serch", json!({})).await;
    assert_eq!(
        envelope,
        json!({ "ok": false, "error": { "type": "NOT_FOUND", "message": "There is no tool `kb_serch`.",
            "retryable": false, "partialSideEffects": false, "suggestion": "Did you mean `kb_search`?" },
            "meta": { "tool": "kb_serch", "toolVersion": null, "executionId": "call-1" } })
    );
}

#[tokio::test]
async fn a_declared_failure_keeps_its_fields() {
    let body =
        "throw new ToolError(ErrorType.TRANSIENT, 'Busy.', { retryable: true, details: { after: 3 } })";
    let (runtime, _dir) = ToolsetBuilder::new().tool("busy", json!({}), body).runtime();
    let error = &call(&runtime, "busy", json!({})).await["error"];
    assert_eq!(error["type"], "TRANSIENT", "{error}");
    assert_eq!((&error["message"], &error["retryable"]), (&json!("Busy."), &json!(true)));

    let body =
        "return { ok: false, error: { type: 'CONFLICT', message: 'Taken.', suggestion: 'Take another.' } }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("taken", json!({}), body).runtime();
    assert_eq!(
        call(&runtime, "taken", json!({})).await["error"],
        json!({ "type": "CONFLICT", "message": "Taken.", "retryable": false, "partialSideEffects": false,
            "suggestion": "Take another." })
    );
}

#[tokio::test]
async fn an_invalid_result_is_an_internal_error_that_leaks_nothing() {
    let bodies = [
        "",
        "return 7",
        "return 'ok'",
        "return [{ ok: true }]",
        "return {}",
        "return { ok: 1 }",
        "return { ok: true, intents: 'END' }",
        "return { ok: true, intents: [{}] }",
        "return { ok: false }",
        "return { ok: false, error: { type: 'NO_SUCH_KIND', message: 'secret' } }",
        "return { ok: false, error: { type: 'CONFIRMATION_REQUIRED', message: 'secret' } }",
        "throw 'secret'",
        "throw new Error('secret at /etc/passwd')",
        "throw null",
        "throw { type: 'VALIDATION', message: 'secret' }",
        "return Promise.reject(new TypeError('secret'))",
        "const data = { secret: 1 }; data.self = data; return { ok: true, data }",
        "return { ok: true, data: 10n }",
        "return { ok: true, get data() { throw new Error('secret') } }",
    ];
    for (index, body) in bodies.into_iter().enumerate() {
        let id = format!("nonsense_{index}");
        let effects = if index % 2 == 0 { "writes" } else { "read_only" };
        let fields = json!({ "sideEffects": effects });
        let (runtime, _dir) = ToolsetBuilder::new().tool(&id, fields, body).runtime();
        let envelope = call(&runtime, &id, json!({})).await;
        assert_internal(&id, &envelope);
        assert_eq!(envelope["error"]["partialSideEffects"], index % 2 == 0, "{body}: {envelope}");
        let text = envelope["error"].to_string();
        assert!(!text.contains("secret") && !text.contains("passwd"), "{body} leaks: {text}");
    }
}

#[tokio::test]
async fn data_that_does_not_match_the_output_schema_is_an_internal_error() {
    let output = json!({ "output": { "type": "object", "required": ["id"],
        "properties": { "id": { "type": "string" } } } });
    let body = "return { ok: true, data: args.good ? { id: 'a' } : { id: 1 } }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("made", output, body).runtime();
    assert_eq!(call(&runtime, "made", json!({ "good": true })).await["data"], json!({ "id": "a" }));
    assert_internal("made", &call(&runtime, "made", json!({})).await);
}

#[tokio::test]
async fn a_timeout_is_transient_and_has_partial_side_effects_only_if_the_tool_writes() {
    let slow = "await new Promise((done) => setTimeout(done, 60000)); return { ok: true }";
    for (effects, partial) in [("read_only", false), ("writes", true)] {
        let fields = json!({ "timeoutMs": 50, "sideEffects": effects });
        let (runtime, _dir) = ToolsetBuilder::new().tool("slow", fields, slow).runtime();
        let error = &call(&runtime, "slow", json!({})).await["error"];
        assert_eq!((&error["type"], &error["partialSideEffects"]), (&json!("TRANSIENT"), &json!(partial)));
    }
}

//! Results and errors, written in each provider's form.

use serde_json::{Map, Value, json};
use toolwright_contract::{
    ConfirmationRequest, ConfirmationToken, Envelope, ErrorKind, Failure, Meta, Success, ToolSpec,
};
use toolwright_providers::{Call, PROVIDERS, ToolResult};

use super::provider;

fn envelope(outcome: Result<Success, Failure>) -> Envelope {
    let meta = Meta {
        tool: "get_weather".to_owned(),
        tool_version: Some("1.0.0".to_owned()),
        registry_version: "1.0.abcdef12".to_owned(),
        duration: 3,
        execution_id: "call_a".to_owned(),
        more: Map::new(),
    };
    Envelope { outcome, meta }
}

fn call(id: Option<&str>) -> Call {
    Call { id: id.map(str::to_owned), name: "get_weather".to_owned(), arguments: Ok(json!({})) }
}

fn written(name: &str) -> Vec<Value> {
    let (first, second) = (call(Some("call_a")), call(Some("call_b")));
    let success = envelope(Ok(json!({ "t": 5 }).into()));
    let failure = envelope(Err(Failure::new(ErrorKind::Transient, "upstream 503")));
    provider(name)
        .write(&[ToolResult::from_envelope(&first, &success), ToolResult::from_envelope(&second, &failure)])
}

const SUCCESS: &str = r#"{"ok":true,"data":{"t":5}}"#;
const FAILURE: &str = r#"{"ok":false,"error":{"type":"TRANSIENT","message":"upstream 503","retryable":false,"partialSideEffects":false}}"#;

fn error() -> Value {
    json!({ "type": "TRANSIENT", "message": "upstream 503", "retryable": false, "partialSideEffects": false })
}

#[test]
fn results_and_errors_have_the_form_of_each_provider() {
    assert_eq!(
        written("openai-chat"),
        [
            json!({ "role": "tool", "tool_call_id": "call_a", "content": SUCCESS }),
            json!({ "role": "tool", "tool_call_id": "call_b", "content": FAILURE }),
        ]
    );
    let item =
        |id: &str, output: &str| json!({ "type": "function_call_output", "call_id": id, "output": output });
    assert_eq!(written("openai-responses"), [item("call_a", SUCCESS), item("call_b", FAILURE)]);
    assert_eq!(
        written("openai-realtime"),
        [
            json!({ "type": "conversation.item.create", "item": item("call_a", SUCCESS) }),
            json!({ "type": "conversation.item.create", "item": item("call_b", FAILURE) }),
            json!({ "type": "response.create" }),
        ]
    );
    assert_eq!(
        written("anthropic"),
        [json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "call_a", "content": SUCCESS },
            { "type": "tool_result", "tool_use_id": "call_b", "content": FAILURE, "is_error": true },
        ] })]
    );
    assert_eq!(
        written("ollama"),
        [
            json!({ "role": "tool", "tool_name": "get_weather", "tool_call_id": "call_a", "content": SUCCESS }),
            json!({ "role": "tool", "tool_name": "get_weather", "tool_call_id": "call_b", "content": FAILURE }),
        ]
    );
    let responses = [
        json!({ "id": "call_a", "name": "get_weather", "response": { "output": { "t": 5 } } }),
        json!({ "id": "call_b", "name": "get_weather", "response": { "error": error() } }),
    ];
    let parts: Vec<Value> =
        responses.iter().map(|response| json!({ "functionResponse": response })).collect();
    assert_eq!(written("gemini"), [json!({ "role": "user", "parts": parts })]);
    assert_eq!(written("gemini-native"), [json!({ "toolResponse": { "functionResponses": responses } })]);
    assert_eq!(
        written("mcp"),
        [
            json!({ "content": [{ "type": "text", "text": "{\"t\":5}" }], "structuredContent": { "t": 5 }, "isError": false }),
            json!({ "content": [{ "type": "text", "text": FAILURE }], "isError": true }),
        ]
    );
}

#[test]
fn nothing_is_written_without_results() {
    for provider in PROVIDERS {
        assert_eq!(provider.write(&[]), [] as [Value; 0], "{}", provider.name);
    }
}

#[test]
fn the_result_of_a_call_without_an_id_has_its_name() {
    let call = call(None);
    let success = envelope(Ok(json!("mild").into()));
    let write = |name: &str| provider(name).write(&[ToolResult::from_envelope(&call, &success)]).remove(0);
    assert_eq!(
        write("gemini")["parts"][0]["functionResponse"],
        json!({ "name": "get_weather", "response": { "output": "mild" } })
    );
    assert_eq!(write("ollama").get("tool_call_id"), None);
    assert_eq!(
        write("mcp"),
        json!({ "content": [{ "type": "text", "text": "mild" }], "structuredContent": { "result": "mild" },
            "isError": false })
    );
}

#[test]
fn results_of_mcp_conform_to_the_declared_output() {
    let call = call(Some("call_a"));
    let (text, object) = (json!("mild"), json!({ "t": 5 }));
    let failure = envelope(Err(Failure::new(ErrorKind::Transient, "upstream 503")));
    let structured = |output: Option<Value>, envelope: &Envelope| {
        let spec = json!({
            "toolId": "get_weather", "version": "1.0.0", "description": "Weather.", "category": "utility",
            "sideEffects": "none", "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
            "latencyBudgetMs": 500, "jsonSchema": { "type": "object" }, "output": output,
        });
        let spec: ToolSpec = serde_json::from_value(spec).unwrap();
        let result = ToolResult::from_envelope(&call, envelope).of_tool(&spec);
        provider("mcp").write(&[result])[0].get("structuredContent").cloned()
    };
    let success = |data: &Value| envelope(Ok(data.clone().into()));
    let any = json!({ "type": ["object", "string"] });
    assert_eq!(structured(Some(json!({ "type": "object" })), &success(&object)), Some(object.clone()));
    assert_eq!(
        structured(Some(json!({ "type": "string" })), &success(&text)),
        Some(json!({ "result": text }))
    );
    // A declared output that may be an object is wrapped for all results.
    assert_eq!(structured(Some(any.clone()), &success(&object)), Some(json!({ "result": object })));
    assert_eq!(structured(Some(any), &failure), None);
    assert_eq!(structured(None, &failure).unwrap()["ok"], false);
}

#[test]
fn the_value_for_the_model_is_written_unchanged() {
    let call = call(Some("call_a"));
    let value = json!({ "ok": false, "error": "No.", "type": "AUTH", "retryable": false });
    for provider in PROVIDERS {
        let written = json!(provider.write(&[ToolResult::from_model_value(&call, &value)])).to_string();
        assert!(written.contains("No.") && written.contains("AUTH"), "{}: {written}", provider.name);
    }
    let anthropic = provider("anthropic").write(&[ToolResult::from_model_value(&call, &value)]);
    assert_eq!(anthropic[0]["content"][0]["is_error"], true);
    let gemini = provider("gemini").write(&[ToolResult::from_model_value(&call, &value)]);
    assert_eq!(
        gemini[0]["parts"][0]["functionResponse"]["response"],
        json!({ "error": { "error": "No.", "type": "AUTH", "retryable": false } })
    );
}

#[test]
fn a_model_never_sees_the_confirmation_token() {
    let call = call(Some("call_a"));
    let mut failure = Failure::new(ErrorKind::ConfirmationRequired, "Ask the user.");
    failure.confirmation = Some(Box::new(ConfirmationRequest {
        confirmation_id: "conf_1".to_owned(),
        tool: "pay".to_owned(),
        args: json!({ "amount": 5 }),
        preview: "Pay 5".to_owned(),
        expires_at: 1,
        token: Some(ConfirmationToken::new("SECRET")),
    }));
    let envelope = envelope(Err(failure));
    for provider in PROVIDERS {
        let written = json!(provider.write(&[ToolResult::from_envelope(&call, &envelope)])).to_string();
        assert!(written.contains("Pay 5") && !written.contains("SECRET"), "{}: {written}", provider.name);
        assert!(!written.contains("executionId"), "{}: {written}", provider.name);
    }
}

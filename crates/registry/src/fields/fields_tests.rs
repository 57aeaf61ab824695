use super::*;

#[test]
fn a_pointer_is_shown_as_a_path() {
    let cases = [
        ("", ""),
        ("/timeoutMs", "timeoutMs"),
        ("/permissions/rateLimit/calls", "permissions.rateLimit.calls"),
        ("/tags/1", "tags[1]"),
        ("/clamp/text/a~1b", "clamp.text.a/b"),
    ];
    for (pointer, path) in cases {
        assert_eq!(field_path(pointer), path);
    }
}

/// A new field needs a row here and a member of `ToolSpec`, nothing else.
#[test]
fn the_table_and_the_type_have_the_same_fields() {
    let all: Map<String, Value> =
        FIELDS.iter().map(|field| (field.artifact_name().to_owned(), Value::Null)).collect();
    let names: Vec<&str> = FIELDS.iter().map(Field::artifact_name).collect();
    let spec = json!({
        "toolId": "a", "version": "1.0.0", "description": "d", "category": "action", "sideEffects": "none",
        "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 1,
        "timeoutMs": 2, "execution": "background", "availability": { "condition": "true" },
        "permissions": { "requiresAuth": true, "roles": ["r"] }, "clamp": { "text": { "n": 1 } }, "tags": ["t"], "allow": ["voice-latency"],
        "jsonSchema": { "type": "object" }, "output": { "type": "object" },
    });
    let typed: toolwright_contract::ToolSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), spec);
    assert_eq!(spec.as_object().unwrap().keys().collect::<Vec<_>>(), names);
    assert_eq!(all.len(), names.len());
}

#[test]
fn the_defaults_of_a_declared_tool_complete_its_spec() {
    let Value::Object(members) = json!({ "description": "d", "parameters": { "type": "object" } }) else {
        panic!()
    };
    let mut spec = declared_spec(&members, false);
    spec.insert("toolId".to_owned(), "a".into());
    let spec: toolwright_contract::ToolSpec = serde_json::from_value(Value::Object(spec)).unwrap();
    assert_eq!(spec.side_effects, SideEffects::Writes);
}

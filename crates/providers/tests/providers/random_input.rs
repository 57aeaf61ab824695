//! Random JSON as a schema, as an event and as a result, and random bytes as a stream: nothing panics, and views stay
//! valid.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use toolwright_providers::{PROVIDERS, ToolResult};

use super::tool;

const KEYWORDS: &str = "type properties required items prefixItems anyOf oneOf allOf not enum const $ref $recursiveRef \
    $defs definitions additionalProperties additionalItems format minimum exclusiveMinimum \
    maxLength multipleOf uniqueItems default examples description title nullable if then \
    dependentRequired $id $anchor a b[] x-note";
const WORDS: &str = "string object array integer null # #/$defs/a #/properties/a #a date-time gone.json";

/// Random JSON in which keywords of JSON Schema are frequent.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z#/$]{0,6}".prop_map(Value::from),
        prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let key = prop::sample::select(KEYWORDS.split_whitespace().collect::<Vec<_>>());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..8).prop_map(|members| {
                Value::Object(
                    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>(),
                )
            }),
        ]
    })
}

/// Checks the types of a native schema and of its subschemas.
fn check_native(schema: &Value) {
    let has = |keyword: &str| schema.get(keyword).is_some();
    match schema.get("type").and_then(Value::as_str) {
        Some("OBJECT") => assert!(!schema["properties"].as_object().unwrap().is_empty(), "{schema}"),
        Some("ARRAY") => assert!(schema["items"].is_object(), "{schema}"),
        Some("STRING" | "INTEGER" | "NUMBER" | "BOOLEAN" | "NULL") => {}
        kind => {
            assert!(kind.is_none() && schema["anyOf"].as_array().is_some_and(|all| all.len() > 1), "{schema}")
        }
    }
    for value in schema.get("enum").and_then(Value::as_array).into_iter().flatten() {
        assert!(value.as_str().is_some_and(|text| !text.is_empty()), "{schema}");
    }
    assert!(
        !["$ref", "const", "oneOf", "allOf", "default", "additionalProperties"].iter().any(|word| has(word))
    );
    let parts = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    parts.chain(schema.get("anyOf").and_then(Value::as_array).into_iter().flatten()).for_each(check_native);
    schema.get("items").into_iter().for_each(check_native);
}

/// Checks that neither the schema nor its subschemas have references.
fn check_inlined(schema: &Value) {
    assert!(!schema.get("$ref").is_some_and(Value::is_string), "{schema}");
    let parts = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let unions = ["anyOf", "oneOf", "prefixItems"].into_iter().filter_map(|keyword| schema.get(keyword));
    parts.chain(unions.filter_map(Value::as_array).flatten()).for_each(check_inlined);
    schema.get("items").into_iter().for_each(check_inlined);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_can_be_a_schema(schema in any_json()) {
        let mut tool = tool("plain");
        tool.output = Some(schema.clone());
        tool.json_schema = schema;
        for provider in PROVIDERS {
            let view = provider.view([&tool]);
            let text = view.declarations.to_string();
            prop_assert!(text.contains("plain"), "{}", provider.name);
            if provider.name == "gemini-native" {
                let parameters = view.declarations.pointer("/0/functionDeclarations/0/parameters");
                parameters.into_iter().for_each(check_native);
            }
            let inlined = match provider.name {
                "ollama" => view.declarations.pointer("/0/function/parameters"),
                "gemini" => view.declarations.pointer("/0/functionDeclarations/0/parametersJsonSchema"),
                _ => None,
            };
            inlined.into_iter().for_each(check_inlined);
        }
    }

    #[test]
    fn any_bytes_can_be_a_stream(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
        for provider in PROVIDERS {
            let (mut decoder, mut assembler) = (provider.frame_decoder(), provider.assembler());
            for chunk in &chunks {
                for event in decoder.push(chunk).into_iter().flatten() {
                    assembler.push(&event);
                }
            }
            let _ = decoder.finish();
            let _ = assembler.finish();
        }
    }

    #[test]
    fn any_json_can_be_a_response_and_a_result(value in any_json(), event in any_event()) {
        for provider in PROVIDERS {
            let _ = provider.read(&value);
            let _ = provider.read(&event);
            let mut assembler = provider.assembler();
            for call in assembler.push(&value).into_iter().chain(assembler.push(&event)) {
                let _ = provider.write(&[ToolResult::from_model_value(&call, &value)]);
            }
            let _ = assembler.finish();
        }
    }
}

/// Events with the structure of a provider's events and random values.
fn any_event() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "response.output_item.added",
        "response.output_item.done",
        "response.function_call_arguments.delta",
        "response.completed",
        "response.done",
        "content_block_start",
        "content_block_delta",
        "message_delta",
    ]);
    (kind, any_json(), any_json(), any_json()).prop_map(|(kind, one, two, three)| {
        json!({
            "type": kind, "item": { "type": "function_call", "id": one, "arguments": two }, "item_id": one,
            "delta": three, "index": two, "content_block": { "type": "tool_use", "id": three, "input": one },
            "response": { "output": [{ "type": "function_call", "call_id": one, "arguments": three }], "status": two },
            "choices": [{ "delta": { "tool_calls": [{ "index": one, "id": two, "function": three }] }, "finish_reason": one }],
            "candidates": [{ "content": { "parts": [{ "functionCall": one }] } }],
            "toolCall": { "functionCalls": [two] }, "message": { "tool_calls": [three] },
        })
    })
}

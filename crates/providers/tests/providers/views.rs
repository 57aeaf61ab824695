//! The declarations in each provider's request: a snapshot for every fixture tool and provider.

use serde_json::{Value, json};
use toolwright_contract::ToolSpec;
use toolwright_providers::{Call, LossKind, PROVIDERS};

use super::{provider, tool, tools};

#[test]
fn every_fixture_tool_is_declared_as_in_its_snapshot() {
    for provider in PROVIDERS {
        for tool in tools() {
            let view = provider.view([&tool]);
            let view = json!({ "declares": view.declarations, "loses": view.losses });
            let text = serde_json::to_string_pretty(&view).unwrap();
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("{}__{}", tool.tool_id, provider.name), text);
            });
        }
    }
}

#[test]
fn the_error_of_an_unknown_provider_lists_the_known_ones() {
    let error = toolwright_providers::provider("openai").unwrap_err().to_string();
    let suggestion = "there is no provider `openai` (did you mean `openai-chat`?); there are `openai-chat`, ";
    assert!(error.starts_with(suggestion), "{error}");
    let far = toolwright_providers::provider("zzz").unwrap_err().to_string();
    assert!(far.starts_with("there is no provider `zzz`; there are "), "{far}");
    for provider in PROVIDERS {
        assert!(error.contains(&format!("`{}`", provider.name)), "{error}");
        assert_eq!(toolwright_providers::provider(provider.name).unwrap().name, provider.name);
    }
}

#[test]
fn a_tool_whose_name_is_not_accepted_is_left_out_and_reported() {
    let mut long = tool("plain");
    long.tool_id = "a".repeat(65);
    let mut dotted = tool("plain");
    dotted.tool_id = "files.read".to_owned();
    let left_out = |name: &str| {
        let view = provider(name).view([&long, &dotted]);
        let names =
            view.losses.iter().filter(|loss| loss.kind == LossKind::LeftOut).map(|loss| loss.tool.clone());
        names.collect::<Vec<_>>()
    };
    for name in ["openai-chat", "openai-responses", "openai-realtime"] {
        assert_eq!(left_out(name), [long.tool_id.clone(), dotted.tool_id.clone()], "{name}");
    }
    assert_eq!(left_out("anthropic"), [dotted.tool_id.clone()]);
    assert_eq!(left_out("gemini"), [long.tool_id.clone()]);
    assert_eq!(left_out("mcp"), [] as [String; 0]);
    assert_eq!(left_out("ollama"), [] as [String; 0]);
}

#[test]
fn only_schemas_that_strict_mode_supports_are_strict() {
    let strict =
        |tool: &ToolSpec| provider("openai-responses").view([tool]).declarations[0]["strict"].clone();
    let names: Vec<String> =
        tools().into_iter().filter(|tool| strict(tool) == true).map(|tool| tool.tool_id).collect();
    assert_eq!(names, ["plain", "no_arguments"]);
    let mut tool = tool("plain");
    let parameters = |schema: Value| json!({ "type": "object", "additionalProperties": false, "required": ["a"], "properties": { "a": schema } });
    let cases = [
        (json!({ "type": "string", "format": "date" }), true),
        (json!({ "type": "string", "format": "uri" }), false),
        (json!({ "type": "string", "default": "x" }), false),
        (json!({ "type": ["string", "null"] }), true),
        (json!({ "type": "object" }), false),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), true),
        (json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }), false),
        (json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true }), false),
        (json!({ "type": "string", "x-note": 1 }), false),
        (json!({ "enum": (0..501).collect::<Vec<_>>() }), false),
    ];
    for (schema, expected) in cases {
        tool.json_schema = parameters(schema.clone());
        assert_eq!(strict(&tool), expected, "{schema}");
    }
}

#[test]
fn gemini_gets_the_limits_and_defaults_of_a_schema_as_they_are() {
    let limits = json!({ "type": "array", "minItems": 1, "uniqueItems": true, "default": ["ab"],
        "items": { "type": "string", "minLength": 2, "maxLength": 9, "pattern": "^[a-z]+$" } });
    let mut tool = tool("plain");
    tool.json_schema =
        json!({ "type": "object", "additionalProperties": false, "properties": { "words": limits } });
    let view = provider("gemini").view([&tool]);
    assert_eq!(view.losses, []);
    let parameters = view.declarations.pointer("/0/functionDeclarations/0/parametersJsonSchema").unwrap();
    assert_eq!(parameters["properties"]["words"], limits);
}

#[test]
fn arguments_that_gemini_writes_as_json_text_are_parsed() {
    let view = provider("gemini-native").view([&tool("open_objects"), &tool("recursive")]);
    let restored = |name: &str, arguments: Value| {
        let mut call = Call { id: None, name: name.to_owned(), arguments: Ok(arguments) };
        view.restore(&mut call);
        call.arguments.unwrap()
    };
    assert_eq!(
        restored(
            "open_objects",
            json!({ "settings": "{\"a\": [1]}", "value": "7", "list": ["1", "x"], "pair": ["7", 7] })
        ),
        json!({ "settings": { "a": [1] }, "value": 7, "list": [1, "x"], "pair": ["7", 7] })
    );
    assert_eq!(
        restored("open_objects", json!({ "settings": "not JSON", "labels": "7" })),
        json!({ "settings": "not JSON", "labels": "7" })
    );
    assert_eq!(
        restored("recursive", json!({ "tree": { "label": "{}", "children": ["{\"label\": \"twig\"}"] } })),
        json!({ "tree": { "label": "{}", "children": [{ "label": "twig" }] } })
    );
    let untouched = json!({ "settings": "{}" });
    let mut call = Call { id: None, name: "open_objects".to_owned(), arguments: Ok(untouched.clone()) };
    provider("openai-chat").view([&tool("open_objects")]).restore(&mut call);
    assert_eq!(call.arguments.unwrap(), untouched);
}

#[test]
fn the_expansion_of_references_is_limited_and_reported() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions
            .insert(format!("d{level}"), json!({ "type": "object", "properties": { "a": next, "b": next } }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": "string" }));
    let mut tool = tool("plain");
    tool.json_schema =
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    for provider in PROVIDERS {
        let view = provider.view([&tool]);
        let length = view.declarations.to_string().len();
        assert!(length < 1_000_000, "{}: {length}", provider.name);
        let is_inlined = ["ollama", "gemini", "gemini-native"].contains(&provider.name);
        assert_eq!(
            view.losses.iter().any(|loss| loss.kind == LossKind::Cut),
            is_inlined,
            "{}",
            provider.name
        );
    }
}

#[test]
fn a_large_schema_without_references_is_not_cut() {
    let properties: serde_json::Map<String, Value> =
        (0..6_000).map(|n| (format!("p{n}"), json!({ "type": "string", "description": "x" }))).collect();
    let mut tool = tool("plain");
    tool.json_schema = json!({ "type": "object", "properties": properties });
    for provider in PROVIDERS {
        assert_eq!(provider.view([&tool]).losses, [], "{}", provider.name);
    }
}

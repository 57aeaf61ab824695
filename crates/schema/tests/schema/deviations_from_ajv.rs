//! Where the standard decides and Ajv differs: cases of our own.

use serde_json::{Value, json};
use toolwright_schema::Validator;

#[track_caller]
fn check(schema: &Value, valid: &[Value], invalid: &[Value]) {
    let validator = Validator::compile(schema).unwrap();
    for value in valid {
        assert!(validator.is_valid(value), "{value}");
        assert_eq!(validator.validate(&mut value.clone()), Ok(()), "{value}");
    }
    for value in invalid {
        assert!(!validator.is_valid(value), "{value}");
        assert!(validator.validate(&mut value.clone()).is_err(), "{value}");
    }
}

#[test]
fn contains_evaluates_matching_items() {
    let schema = json!({
        "prefixItems": [true],
        "contains": { "type": "string" },
        "unevaluatedItems": { "type": "null" },
    });
    check(&schema, &[json!([1, "a", null, "b"]), json!(["a"])], &[json!([1, "a", 2]), json!([1, 2, "a"])]);
    let closed = json!({ "contains": { "type": "string" }, "minContains": 0, "unevaluatedItems": false });
    check(&closed, &[json!([]), json!(["a", "b"])], &[json!([1]), json!(["a", 1])]);
    let most = json!({ "contains": { "type": "string" }, "maxContains": 1, "unevaluatedItems": true });
    check(&most, &[json!(["a", 1])], &[json!(["a", "b", 1])]);
}

#[test]
fn an_item_error_is_reported_once_at_its_own_path() {
    let schema = json!({ "contains": { "type": "string" }, "unevaluatedItems": { "type": "null" } });
    let errors = Validator::compile(&schema).unwrap().validate(&mut json!(["a", 1, "b"])).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].instance_path.as_str(), errors[0].keyword), ("/1", "type"));
}

#[test]
fn if_without_then_and_else_only_records_what_is_evaluated() {
    let schema = json!({ "if": { "properties": { "a": { "const": 1 } } }, "unevaluatedProperties": false });
    check(&schema, &[json!({ "a": 1 }), json!({})], &[json!({ "a": 2 }), json!({ "b": 1 })]);
    check(&json!({ "if": false }), &[json!(1)], &[]);
}

#[test]
fn a_meta_schema_selects_the_vocabularies() {
    let meta = json!({ "$vocabulary": {
        "https://json-schema.org/draft/2020-12/vocab/core": true,
        "https://json-schema.org/draft/2020-12/vocab/applicator": true,
    } });
    let schema = json!({
        "$schema": "https://example.com/meta",
        "properties": { "a": { "type": "string", "format": "date", "not": { "type": "string" } }, "b": false },
    });
    let validator = Validator::compile_with(&schema, &[("https://example.com/meta", &meta)]).unwrap();
    assert!(!validator.is_valid(&json!({ "a": "x" })), "`not` applies, and its schema allows everything");
    assert!(!validator.is_valid(&json!({ "b": 1 })));
    let unknown = Validator::compile(&schema).unwrap();
    assert!(!unknown.is_valid(&json!({ "a": 1 })), "an unknown meta-schema changes nothing");
}

#[test]
fn an_older_draft_has_no_prefix_items() {
    let schema = json!({
        "$defs": { "old": {
            "$id": "https://example.com/old",
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "prefixItems": [{ "type": "string" }],
        } },
        "properties": {
            "old": { "$ref": "https://example.com/old" },
            "new": { "prefixItems": [{ "type": "string" }] },
        },
    });
    check(&schema, &[json!({ "old": [1], "new": ["a"] })], &[json!({ "new": [1] })]);
}

#[test]
fn required_errors_come_before_property_errors() {
    let schema = json!({
        "required": ["z"],
        "properties": { "a": { "type": "string" }, "b": { "type": "string" }, "z": {} },
        "additionalProperties": {
            // Branches run in full, because a called schema may fill in defaults; their errors are discarded.
            "anyOf": [{ "$ref": "#/$defs/list" }, { "$ref": "#/$defs/word" }],
        },
        "$defs": {
            "list": { "type": "array", "items": { "properties": { "n": { "default": 1 } } } },
            "word": { "type": "string", "minLength": 2 },
        },
    });
    let validator = Validator::compile(&schema).unwrap();
    let found = |mut value: Value| {
        let errors = validator.validate(&mut value).unwrap_err();
        errors.iter().map(|error| format!("{} {}", error.instance_path, error.keyword)).collect::<Vec<_>>()
    };
    let mut value = json!({ "b": 1, "more": "word", "a": 2 });
    assert_eq!(found(value.clone()), [" required", "/a type", "/b type"]);
    value["more"] = json!("w");
    let expected = [" required", "/more type", "/more minLength", "/more anyOf", "/a type", "/b type"];
    assert_eq!(found(value.clone()), expected);
    value["z"] = json!([]);
    assert_eq!(found(value), expected[1..]);
}

#[test]
fn only_the_first_hundred_errors_are_reported() {
    let names: Vec<String> = (0..120).map(|number| format!("p{number:03}")).collect();
    let properties: Value = names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
    let schema = json!({ "required": ["x", "y"], "properties": properties });
    let mut value: Value = names.iter().map(|name| (name.clone(), json!(1))).collect();
    let errors = Validator::compile(&schema).unwrap().validate(&mut value).unwrap_err();
    assert_eq!(errors.len(), 100);
    assert_eq!([errors[0].keyword, errors[1].keyword], ["required"; 2]);
    assert_eq!(errors[99].instance_path, "/p097");
}

//! Hostile values and schemas: each validation ends soon and does not overflow the stack.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_schema::Validator;

fn assert_within(limit: Duration, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    let taken = start.elapsed();
    assert!(taken < limit, "took {taken:?}");
}

const TIME_LIMIT: Duration = Duration::from_secs(20);

fn nested(depth: usize, inner: Value) -> Value {
    (0..depth).fold(inner, |value, level| if level % 2 == 0 { json!([value]) } else { json!({ "a": value }) })
}

#[test]
fn a_deep_value_is_validated() {
    let schema = json!({
        "anyOf": [
            { "type": "array", "items": { "$ref": "#" } },
            { "type": "object", "additionalProperties": { "$ref": "#" } },
            { "type": "integer" },
        ],
    });
    let validator = Validator::compile(&schema).unwrap();
    assert!(validator.is_valid(&nested(120, json!(1))));
    let mut wrong = nested(120, json!("x"));
    assert_within(TIME_LIMIT, || assert!(validator.validate(&mut wrong).is_err()));
}

#[test]
fn deep_objects_do_not_overflow_the_stack() {
    let schema = json!({
        "patternProperties": { "^a": { "allOf": [{ "if": true, "then": { "oneOf": [{ "$ref": "#" }] } }] } },
        "unevaluatedProperties": false,
        "items": { "$ref": "#/patternProperties/^a" },
    });
    let validator = Validator::compile(&schema).unwrap();
    let mut value = nested(128, json!(1));
    assert_eq!(validator.validate(&mut value), Ok(()));
}

#[test]
fn nested_branches_with_defaults_are_run_once() {
    let schema = json!({
        "anyOf": [
            { "type": "array", "items": { "$ref": "#" } },
            { "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "default": 1 } } },
            { "type": "integer" },
        ],
        "properties": { "c": { "default": 1 } },
    });
    let validator = Validator::compile(&schema).unwrap();
    let mut wrong = nested(100, json!("x"));
    assert_within(TIME_LIMIT, || assert_ne!(validator.validate(&mut wrong).unwrap_err()[0].keyword, "$ref"));
}

#[test]
fn a_reference_to_itself_ends_with_an_error() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "not": { "$ref": "#" } }),
        json!({ "dependentSchemas": { "a": { "$ref": "#" } } }),
        json!({ "dependencies": { "a": { "anyOf": [{ "$ref": "#" }], "unevaluatedProperties": false } } }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "oneOf": [{ "$ref": "#/$defs/b" }] }, "b": { "if": { "$ref": "#/$defs/a" }, "then": false } } }),
        json!({ "properties": { "a": { "default": 1 } }, "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
    ] {
        let validator = Validator::compile(&schema).unwrap();
        assert_within(TIME_LIMIT, || {
            let value = json!({ "a": 1 });
            assert!(!validator.is_valid(&value), "{schema}");
            let errors = validator.validate(&mut value.clone()).unwrap_err();
            assert_eq!(errors[0].keyword, "$ref");
        });
    }
}

#[test]
fn references_that_fan_out_are_bounded() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let next = format!("#/$defs/d{}", level + 1);
        definitions.insert(format!("d{level}"), json!({ "allOf": [{ "$ref": next }, { "$ref": next }] }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": "integer" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    let validator = Validator::compile(&schema).unwrap();
    assert_within(TIME_LIMIT, || {
        assert_eq!(validator.validate(&mut json!(1)).unwrap_err()[0].keyword, "$ref")
    });
}

#[test]
fn a_quarter_million_failing_branches_end() {
    let schema = json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "object" }, { "const": 2 }, { "maximum": 0 }] } });
    let validator = Validator::compile(&schema).unwrap();
    let mut value = Value::Array(vec![json!(1); 1 << 18]);
    assert_within(TIME_LIMIT, || assert_eq!(validator.validate(&mut value).unwrap_err().len(), 100));
}

#[test]
fn catastrophic_patterns_are_bounded() {
    let text = format!("{}!", "a".repeat(200_000));
    for pattern in ["^(a+)+$", "^(a|aa)+$", "^(?=(a+)+$)a*b", r"^(a+)\1+b$", "(x+x+)+y"] {
        let validator = Validator::compile(&json!({ "pattern": pattern })).unwrap();
        assert_within(TIME_LIMIT, || assert!(!validator.is_valid(&json!(text)), "{pattern}"));
    }
}

#[test]
fn many_items_are_compared_in_linear_time() {
    let numbers: Value = (0..100_000).collect();
    let texts: Value = (0..100_000).map(|number| format!("item {number}")).collect();
    let objects: Value = (0..20_000).map(|number| json!({ "id": number })).collect();
    for schema in [
        json!({ "uniqueItems": true }),
        json!({ "uniqueItems": true, "items": { "type": ["string", "integer"] } }),
    ] {
        let validator = Validator::compile(&schema).unwrap();
        for value in [&numbers, &texts] {
            assert_within(TIME_LIMIT, || assert!(validator.is_valid(value)));
        }
    }
    let validator = Validator::compile(&json!({ "uniqueItems": true })).unwrap();
    assert_within(TIME_LIMIT, || assert!(validator.is_valid(&objects)));
    let mut same = Value::Array(vec![json!("x"); 100_000]);
    assert_within(TIME_LIMIT, || assert!(validator.validate(&mut same).is_err()));
}

#[test]
fn a_long_chain_of_references_compiles() {
    let mut definitions = serde_json::Map::new();
    for link in 0..5_000 {
        let next = format!("#/$defs/d{}", link + 1);
        definitions.insert(format!("d{link}"), json!({ "properties": { "a": { "$ref": next } } }));
    }
    definitions.insert("d5000".to_owned(), json!({ "type": "integer" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    assert_within(TIME_LIMIT, || {
        assert!(Validator::compile(&schema).unwrap().is_valid(&json!({ "a": { "a": {} } })))
    });
}

#[test]
fn many_unknown_members_are_validated_in_time() {
    let properties: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("p{n}"), json!({ "type": "integer" }))).collect();
    let validator =
        Validator::compile(&json!({ "properties": properties, "additionalProperties": true })).unwrap();
    let value: Value = Value::Object((0..50_000).rev().map(|n| (format!("p{n}"), json!(n))).collect());
    assert_within(TIME_LIMIT, || assert!(validator.is_valid(&value)));
}

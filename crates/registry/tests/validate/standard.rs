//! What the standard wants and Ajv does otherwise, in a few cases of our own.

use serde_json::{Value, json};
use toolwright_registry::schema::Validator;

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
fn contains_evaluates_what_it_takes() {
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
fn what_an_item_fails_for_is_said_once_and_where_it_is() {
    let schema = json!({ "contains": { "type": "string" }, "unevaluatedItems": { "type": "null" } });
    let errors = Validator::compile(&schema).unwrap().validate(&mut json!(["a", 1, "b"])).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].instance_path.as_str(), errors[0].keyword), ("/1", "type"));
}

#[test]
fn a_lone_if_tells_what_is_evaluated_and_nothing_else() {
    let schema = json!({ "if": { "properties": { "a": { "const": 1 } } }, "unevaluatedProperties": false });
    check(&schema, &[json!({ "a": 1 }), json!({})], &[json!({ "a": 2 }), json!({ "b": 1 })]);
    check(&json!({ "if": false }), &[json!(1)], &[]);
}

#[test]
fn a_meta_schema_says_which_keywords_count() {
    let meta = json!({ "$vocabulary": {
        "https://json-schema.org/draft/2020-12/vocab/core": true,
        "https://json-schema.org/draft/2020-12/vocab/applicator": true,
    } });
    let schema = json!({
        "$schema": "https://example.com/meta",
        "properties": { "a": { "type": "string", "format": "date", "not": { "type": "string" } }, "b": false },
    });
    let validator = Validator::compile_with(&schema, &[("https://example.com/meta", &meta)]).unwrap();
    assert!(!validator.is_valid(&json!({ "a": "x" })), "`not` is there, and its schema allows everything");
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

use serde_json::json;

use super::*;

#[test]
fn defaults_fill_objects_that_are_there_and_nothing_else() {
    let schema = json!({
        "type": "object",
        "properties": {
            "k": {"type": "integer", "default": 5},
            "filters": {"type": "object", "properties": {"deep": {"type": "boolean", "default": true}}},
            "absent": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"role": {"type": "string", "default": "viewer"}}}},
            "linked": {"$ref": "#/$defs/linked"}
        },
        "allOf": [{"type": "object", "properties": {"also": {"type": "string", "default": "yes"}}}],
        "$defs": {"linked": {"type": "object", "properties": {"y": {"type": "integer", "default": 2}}}}
    });
    let mut value = json!({"filters": {}, "list": [{}, {"role": "owner"}], "linked": {}});
    fill_defaults(&schema, &schema, &mut value);
    assert_eq!(
        value,
        json!({"filters": {"deep": true}, "list": [{"role": "viewer"}, {"role": "owner"}],
               "linked": {"y": 2}, "k": 5, "also": "yes"})
    );
}

#[test]
fn a_reference_to_itself_does_not_hang() {
    let schema = json!({"$ref": "#"});
    fill_defaults(&schema, &schema, &mut json!({}));
}

#[test]
fn a_default_that_its_own_schema_refuses_is_found() {
    let schema = json!({
        "type": "object",
        "properties": {
            "fine": {"type": "integer", "minimum": 1, "maximum": 5, "default": 5},
            "word": {"type": "string", "enum": ["a"], "default": "b"},
            "range": {"type": "integer", "minimum": 1, "default": 0},
            "email": {"type": "string", "format": "email", "default": "nobody"},
            "linked": {"$ref": "#/$defs/short", "default": "too long"},
            "list": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": ["x", ""]}
        },
        "$defs": {"short": {"type": "string", "maxLength": 3}}
    });
    let pointers: Vec<_> = refused_defaults(&schema).into_iter().map(|(pointer, _)| pointer).collect();
    let property = |name: &str| format!("/properties/{name}");
    assert_eq!(pointers, ["word", "range", "email", "linked", "list"].map(property));
}

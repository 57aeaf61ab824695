use serde_json::json;

use super::*;

#[test]
fn a_default_that_its_own_schema_rejects_is_found() {
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
    let pointers: Vec<_> = invalid_defaults(&schema).into_iter().map(|(pointer, _)| pointer).collect();
    let property = |name: &str| format!("/properties/{name}");
    assert_eq!(pointers, ["word", "range", "email", "linked", "list"].map(property));
}

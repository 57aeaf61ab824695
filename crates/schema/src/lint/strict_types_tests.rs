//! `StrictTypes` and `nullable`: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn a_keyword_needs_its_type() {
    check(
        r#"{"properties": {"a": {"minimum": 1}}}"#,
        &[
            r#"schema-missing-type /properties Key: `properties` needs a `type` beside it: object [add `"type": "object"`]"#,
            r#"schema-missing-type /properties/a/minimum Key: `minimum` needs a `type` beside it: number [add `"type": "number"`]"#,
        ],
    );
}

#[test]
fn a_keyword_for_another_type_is_refused() {
    check(
        r#"{"type": "string", "minimum": 1}"#,
        &[
            "schema-missing-type /minimum Key: `minimum` applies to number, but `type` is string [remove `minimum` or change `type`]",
        ],
    );
}

#[test]
fn format_takes_numbers_and_strings() {
    check(
        r#"{"type": "boolean", "format": "date"}"#,
        &[
            "schema-missing-type /format Key: `format` applies to string or number, but `type` is boolean [remove `format` or change `type`]",
        ],
    );
}

#[test]
fn types_are_inherited_by_schemas_of_the_same_value() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "integer", "anyOf": [{"minimum": 1}, {"maximum": 9}]}}}"#,
        &[],
    );
}

#[test]
fn types_are_not_inherited_by_parts() {
    check(
        r#"{"type": "array", "items": {"maxItems": 1}}"#,
        &[
            r#"schema-missing-type /items/maxItems Key: `maxItems` needs a `type` beside it: array [add `"type": "array"`]"#,
        ],
    );
}

#[test]
fn a_union_of_types_is_refused() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": ["string", "number"]}, "b": {"type": ["string", "null"]}}}"#,
        &[
            "schema-union-type /properties/a/type Value: `type` must not be a union of types, got string or number [split it into `anyOf` with one type each, or choose one type (one type and null is allowed)]",
        ],
    );
}

#[test]
fn a_type_the_context_does_not_allow_is_refused() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "number", "anyOf": [{"type": "integer"}, {"type": "string"}]}}}"#,
        &[
            "schema-type-not-allowed-by-context /properties/a/anyOf/1/type Value: `type` string is excluded by the enclosing schema, which allows number [add this type to the enclosing schema, or change this one]",
        ],
    );
}

#[test]
fn nullable_needs_a_type() {
    check(
        r#"{"type": "object", "properties": {"a": {"nullable": true}, "b": {"type": "null", "nullable": false}, "c": {"type": "string", "nullable": "yes"}, "d": {"type": "string", "nullable": true}}}"#,
        &[
            r#"schema-nullable /properties/a/nullable Key: `nullable` has no effect without `type` [remove `nullable` and list the types: `"type": ["string", "null"]`]"#,
            r#"schema-nullable /properties/b/nullable Key: `nullable` is false, but `type` allows null [remove `nullable` and list the types: `"type": ["string", "null"]`]"#,
            "schema-invalid /properties/c/nullable Value: `nullable` must be true or false, got \"yes\" []",
        ],
    );
}

//! Which schemas are visited, and in what role: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn unknown_keywords_are_reported_at_their_key() {
    check(
        r#"{"type": "object", "additionalProperties": false, "propertes": {}, "x-order": 1, "properties": {"a": {"type": "string", "Enum": ["x"], "example": "e"}}}"#,
        &[
            "schema-unknown-keyword /propertes Key: unknown keyword `propertes` [did you mean `properties`?]",
            "schema-unknown-keyword /x-order Key: unknown keyword `x-order` [strict mode knows no extension keywords: remove it]",
            "schema-unknown-keyword /properties/a/Enum Key: unknown keyword `Enum` [did you mean `enum`?]",
            "schema-unknown-keyword /properties/a/example Key: unknown keyword `example` [use `examples` with a list]",
        ],
    );
}

#[test]
fn keywords_from_other_drafts_get_help() {
    check(
        r#"{"type": "array", "items": {"type": "string"}, "additionalItems": false, "$anchor": "here"}"#,
        &[
            "schema-unknown-keyword /additionalItems Key: unknown keyword `additionalItems` [in 2020-12 the tuple is `prefixItems` and `items` is for the items after it]",
            "schema-unknown-keyword /$anchor Key: unknown keyword `$anchor` [strict mode does not know `$anchor`: refer to the schema by pointer, as in `#/$defs/name`]",
        ],
    );
}

#[test]
fn id_is_not_supported() {
    check(
        r#"{"id": "x", "type": "string"}"#,
        &["schema-unknown-keyword /id Key: `id` is not supported [did you mean `$id`?]"],
    );
}

#[test]
fn a_default_of_the_whole_schema_is_ignored() {
    check(
        r#"{"type": "object", "default": {}}"#,
        &[
            "schema-ignored-default /default Key: the `default` of the whole schema is never filled in [put `default` on the property itself, or remove it]",
        ],
    );
}

#[test]
fn unreferenced_definitions_are_not_visited() {
    check(r#"{"type": "object", "$defs": {"a": {"minLength": 1, "foo": 2}}}"#, &[]);
}

#[test]
fn a_referenced_definition_with_references_is_compiled_on_its_own() {
    check(
        r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "object", "default": {}, "properties": {"next": {"$ref": "#/$defs/a"}}}}}"##,
        &[
            "schema-ignored-default /$defs/a/default Key: the `default` of a referenced schema is never filled in [put `default` on the property itself, or remove it]",
        ],
    );
}

#[test]
fn an_async_schema_inside_a_plain_one_is_refused() {
    check(
        r#"{"type": "object", "properties": {"a": {"$async": true, "type": "string"}}}"#,
        &[
            "schema-async /properties/a/$async Key: `$async` is not allowed inside a synchronous schema [remove `$async`]",
        ],
    );
}

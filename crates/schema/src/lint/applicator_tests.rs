//! Keywords for any type: what is reported, where and with what help.

use super::super::sample::check;

#[test]
fn then_without_if_is_ignored() {
    check(
        r#"{"then": {"type": "string"}, "else": true}"#,
        &[
            "schema-ignored-keyword /then Key: `then` without `if` is ignored [add `if`, or use `allOf`]",
            "schema-ignored-keyword /else Key: `else` without `if` is ignored [add `if`, or use `allOf`]",
        ],
    );
}

#[test]
fn if_without_then_and_else_is_ignored() {
    check(
        r#"{"if": {"type": "string"}}"#,
        &[
            "schema-ignored-keyword /if Key: `if` without `then` and `else` is ignored [add `then` or `else`, or remove `if`]",
        ],
    );
}

#[test]
fn an_empty_enum_allows_nothing() {
    check(
        r#"{"type": "string", "enum": []}"#,
        &[
            "schema-empty-enum /enum Value: `enum` is empty, so nothing is valid [list the allowed values, or remove `enum`]",
        ],
    );
}

//! Keywords for any type: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn then_without_if_has_no_effect() {
    check(
        r#"{"then": {"type": "string"}, "else": true}"#,
        &[
            "schema-ignored-keyword /then Key: `then` has no effect without `if` [add `if`, or remove `then`]",
            "schema-ignored-keyword /else Key: `else` has no effect without `if` [add `if`, or remove `else`]",
        ],
    );
}

#[test]
fn if_without_then_and_else_has_no_effect() {
    check(
        r#"{"if": {"type": "string"}}"#,
        &[
            "schema-ignored-keyword /if Key: `if` has no effect without `then` and `else` [add `then` or `else`, or remove `if`]",
        ],
    );
}

#[test]
fn an_empty_enum_allows_nothing() {
    check(
        r#"{"type": "string", "enum": []}"#,
        &[
            "schema-empty-enum /enum Value: `enum` is empty, so no value is valid [list the allowed values, or remove `enum`]",
        ],
    );
}

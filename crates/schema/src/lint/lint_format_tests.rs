//! Formats and their limits: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn unknown_formats_are_refused() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "string", "format": "datetime"}, "b": {"type": "string", "format": "e-mail"}, "c": {"type": "string", "format": "frobnicated-thing"}}}"#,
        &[
            "schema-unknown-format /properties/a/format Value: unknown `format`: `datetime` [did you mean `date-time`?]",
            "schema-unknown-format /properties/b/format Value: unknown `format`: `e-mail` [did you mean `email`?]",
            "schema-unknown-format /properties/c/format Value: unknown `format`: `frobnicated-thing` []",
        ],
    );
}

#[test]
fn limits_need_a_format_with_an_order() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "string", "formatMinimum": "2020-01-01"}, "b": {"type": "string", "format": "email", "formatMaximum": "x"}, "c": {"type": "string", "format": "date", "formatExclusiveMinimum": 3}, "d": {"type": "string", "format": "date", "formatMinimum": "2020-01-01"}}}"#,
        &[
            "schema-ignored-keyword /properties/a/formatMinimum Key: `formatMinimum` has no effect without `format` [add the `format` to compare by, such as `date-time`]",
            "schema-format-without-order /properties/b/formatMaximum Key: `formatMaximum` cannot compare values of format `email` [only dates and times have an order]",
            "schema-invalid /properties/c/formatExclusiveMinimum Value: `formatExclusiveMinimum` must be a string, got 3 []",
        ],
    );
}

//! Keywords for arrays: what is reported, where and with what help.

use super::super::sample::check;

#[test]
fn a_tuple_needs_a_fixed_length() {
    check(
        r#"{"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 2}"#,
        &[
            r#"schema-loose-tuple /prefixItems Key: the tuple has 2 items, but its length is not fixed to 2 [add `"minItems": 2` and `"items": false`]"#,
        ],
    );
}

#[test]
fn a_closed_tuple_is_fine() {
    check(r#"{"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "items": false}"#, &[]);
}

#[test]
fn contains_limits_need_contains() {
    check(
        r#"{"type": "array", "minContains": 1, "maxContains": 2}"#,
        &[
            "schema-ignored-keyword /maxContains Key: `maxContains` without `contains` is ignored [add `contains`]",
            "schema-ignored-keyword /minContains Key: `minContains` without `contains` is ignored [add `contains`]",
        ],
    );
}

#[test]
fn contains_that_demands_nothing_is_ignored() {
    check(
        r#"{"type": "array", "contains": {"type": "string"}, "minContains": 0}"#,
        &[
            "schema-ignored-keyword /minContains Key: `contains` is ignored when `minContains` is 0 and there is no `maxContains` [remove `contains`, or demand at least one]",
        ],
    );
}

#[test]
fn contains_that_demands_the_impossible_is_refused() {
    check(
        r#"{"type": "array", "contains": {"type": "string"}, "minContains": 3, "maxContains": 2}"#,
        &[
            "schema-never-valid /minContains Value: `minContains` is above `maxContains`, so no array is valid []",
        ],
    );
}

#[test]
fn unevaluated_items_are_not_walked_when_all_items_are_evaluated() {
    check(r#"{"type": "array", "items": {"type": "string"}, "unevaluatedItems": {"minLength": 1}}"#, &[]);
}

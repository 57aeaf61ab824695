//! Keywords for arrays: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn a_tuple_needs_a_fixed_length() {
    check(
        r#"{"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 2}"#,
        &[
            r#"schema-loose-tuple /prefixItems Key: `prefixItems` has 2 items, but the length is not fixed to 2 [add `"minItems": 2` and `"items": false`]"#,
        ],
    );
}

#[test]
fn a_closed_tuple_is_accepted() {
    check(r#"{"type": "array", "prefixItems": [{"type": "string"}], "minItems": 1, "items": false}"#, &[]);
}

#[test]
fn contains_limits_need_contains() {
    check(
        r#"{"type": "array", "minContains": 1, "maxContains": 2}"#,
        &[
            "schema-ignored-keyword /maxContains Key: `maxContains` has no effect without `contains` [add `contains`, or remove `maxContains`]",
            "schema-ignored-keyword /minContains Key: `minContains` has no effect without `contains` [add `contains`, or remove `minContains`]",
        ],
    );
}

#[test]
fn contains_that_requires_nothing_has_no_effect() {
    check(
        r#"{"type": "array", "contains": {"type": "string"}, "minContains": 0}"#,
        &[
            "schema-ignored-keyword /minContains Key: `contains` has no effect when `minContains` is 0 and there is no `maxContains` [remove `contains`, or require at least one item]",
        ],
    );
}

#[test]
fn contains_with_contradicting_limits_is_refused() {
    check(
        r#"{"type": "array", "contains": {"type": "string"}, "minContains": 3, "maxContains": 2}"#,
        &[
            "schema-never-valid /minContains Value: `minContains` 3 is above `maxContains` 2, so no array is valid []",
        ],
    );
}

#[test]
fn unevaluated_items_are_not_visited_when_all_items_are_evaluated() {
    check(r#"{"type": "array", "items": {"type": "string"}, "unevaluatedItems": {"minLength": 1}}"#, &[]);
}

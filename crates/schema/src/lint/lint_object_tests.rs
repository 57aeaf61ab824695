//! Keywords for objects: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn required_names_must_be_defined_in_the_same_schema() {
    check(
        r#"{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["qeury", "other"]}"#,
        &[
            "schema-required-undefined /required/0 Value: `required` names `qeury`, which is not in `properties` [did you mean `query`?]",
            "schema-required-undefined /required/1 Value: `required` names `other`, which is not in `properties` [add `other` to `properties` of the same schema]",
        ],
    );
}

#[test]
fn required_in_a_branch_does_not_see_the_properties_outside() {
    check(
        r#"{"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}"#,
        &[
            "schema-required-undefined /anyOf/0/required/0 Value: `required` names `a`, which is not in `properties` [add `a` to `properties` of the same schema]",
        ],
    );
}

#[test]
fn required_after_properties_of_the_same_value_sees_them() {
    check(
        r#"{"type": "object", "properties": {"a": {}}, "dependentSchemas": {"a": {"required": ["a"]}}}"#,
        &[],
    );
}

#[test]
fn defaults_in_a_branch_are_ignored() {
    check(
        r#"{"type": "object", "anyOf": [{"properties": {"a": {"type": "string", "default": "x"}}}]}"#,
        &[
            "schema-ignored-default /anyOf/0/properties/a/default Key: the `default` of `a` is never filled in, because its schema may not apply [defaults are filled in outside `anyOf`, `oneOf`, `not`, `if` and `contains` only]",
        ],
    );
}

#[test]
fn defaults_below_a_branch_are_ignored_through_plain_references() {
    check(
        r##"{"type": "object", "not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "object", "properties": {"b": {"default": 1}}}}}"##,
        &[
            "schema-ignored-default /$defs/a/properties/b/default Key: the `default` of `b` is never filled in, because its schema may not apply [defaults are filled in outside `anyOf`, `oneOf`, `not`, `if` and `contains` only]",
        ],
    );
}

#[test]
fn a_pattern_must_not_match_a_declared_property() {
    check(
        r#"{"type": "object", "properties": {"foo": {}, "bar": {}}, "patternProperties": {"^f": {"type": "string"}, "[^]{9}": {"type": "string"}}}"#,
        &[
            "schema-overlapping-pattern /patternProperties/^f Key: pattern `^f` also matches the property `foo` [make the pattern stricter, or move the property's schema under the pattern]",
        ],
    );
}

#[test]
fn bad_patterns_in_keys_are_reported_at_the_key() {
    check(
        r#"{"type": "object", "patternProperties": {"(": {"type": "string"}}}"#,
        &[
            r"schema-bad-pattern /patternProperties/( Key: pattern `(` is not a regular expression: Unterminated capturing group [the syntax is ECMAScript with the `u` flag: escape only `^$\.*+?()[]{}|/`]",
        ],
    );
}

//! References: what is reported, where and with what help.

use serde_json::json;

use super::super::lint;
use super::super::support::check;

#[test]
fn references_that_do_not_resolve_are_reported() {
    check(
        r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/adress"}, "b": {"$ref": "https://example.com/x.json"}, "c": {"$ref": "#/properties"}, "d": {"$ref": "#/title"}}, "title": "t", "$defs": {"address": {"type": "string"}}}"##,
        &[
            "schema-unresolved-ref /properties/a/$ref Value: `$ref` `#/$defs/adress` does not resolve to a schema [did you mean `#/$defs/address`?]",
            "schema-unresolved-ref /properties/b/$ref Value: `$ref` `https://example.com/x.json` does not resolve to a schema [other documents are not loaded: copy the schema into `$defs`]",
            "schema-unknown-keyword /properties/a Key: unknown keyword `a` []",
            "schema-unknown-keyword /properties/b Key: unknown keyword `b` []",
            "schema-unknown-keyword /properties/c Key: unknown keyword `c` []",
            "schema-unknown-keyword /properties/d Key: unknown keyword `d` []",
            "schema-unresolved-ref /properties/d/$ref Value: `$ref` `#/title` resolves to a value that is not a schema []",
        ],
    );
}

#[test]
fn reference_loops_are_reported() {
    check(
        r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##,
        &["schema-unresolved-ref /properties/a/$ref Value: `$ref` `#/$defs/a` only refers back to itself []"],
    );
}

#[test]
fn problems_of_a_definition_are_reported_there_and_once() {
    check(
        r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/x~1y"}, "b": {"$ref": "#/$defs/x~1y"}}, "$defs": {"x/y": {"minLength": 1}}}"##,
        &[
            r#"schema-missing-type /$defs/x~1y/minLength Key: `minLength` needs a `type` beside it: string [add `"type": "string"`]"#,
        ],
    );
}

#[test]
fn a_dynamic_reference_starts_with_a_hash() {
    check(
        r#"{"$dynamicRef": "x#a"}"#,
        &[
            "schema-unresolved-ref /$dynamicRef Value: `$dynamicRef` must start with `#`, got `x#a` [name a `$dynamicAnchor` of this schema, as in `#node`]",
        ],
    );
}

#[test]
fn ids_anchors_and_pointers_resolve() {
    check(
        r##"{"$id": "http://ex.com/root.json", "type": "object", "properties": {"a": {"$ref": "child"}, "b": {"$ref": "child#/$defs/x"}, "c": {"$ref": "#here"}, "d": {"$ref": "http://ex.com/root.json#/$defs/p%25q"}, "e": {"$ref": "root.json"}}, "$defs": {"c": {"$id": "child", "type": "string", "$defs": {"x": {"type": "null"}}}, "h": {"$dynamicAnchor": "here", "type": "string"}, "p%q": {"type": "string"}}}"##,
        &[],
    );
}

#[test]
fn a_name_given_twice_is_refused() {
    check(
        r#"{"type": "object", "$defs": {"a": {"$dynamicAnchor": "x"}, "b": {"$dynamicAnchor": "x"}}}"#,
        &[
            "schema-ambiguous-id /$defs/b/$dynamicAnchor Value: `#x` names more than one schema [give each schema a unique name]",
        ],
    );
}

#[test]
fn an_old_recursive_anchor_is_refused() {
    check(
        r#"{"$recursiveAnchor": "a"}"#,
        &[
            "schema-ignored-keyword /$recursiveAnchor Key: `$recursiveAnchor` is a keyword of an older draft [use `$dynamicAnchor` and `$dynamicRef`]",
        ],
    );
}

#[test]
fn schemas_nested_as_deep_as_the_parser_allows_do_not_overflow_the_stack() {
    let schema = r#"{"not":"#.repeat(120) + "{\"$ref\":\"#\"}" + &"}".repeat(120);
    let codes: Vec<&str> =
        lint(&serde_json::from_str(&schema).unwrap()).iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["schema-unbounded-cost"]);
}

#[test]
fn a_long_chain_of_bare_references_does_not_overflow_the_stack() {
    let mut schema = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "type": "object", "$defs": {}});
    for level in 0..5000 {
        schema["$defs"][format!("d{level}")] = json!({"$ref": format!("#/$defs/d{}", level + 1)});
    }
    let codes: Vec<&str> = lint(&schema).iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["schema-unresolved-ref"]);
}

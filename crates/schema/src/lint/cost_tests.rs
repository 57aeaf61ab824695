//! The bound on work: what is reported, where and with what help.

use serde_json::{Value, json};

use super::super::linter::Linter;
use super::super::problem::Report;
use super::super::ref_resolver::RefResolver;
use super::super::support::check;
use super::super::{lint, meta_schema};

#[test]
fn a_reference_cycle_on_one_value_is_refused() {
    check(
        r##"{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}"##,
        &[
            "schema-unbounded-cost /$defs/b/anyOf/0/$ref Value: validation would never end: this `$ref` refers back to itself for the same value [a recursive reference must go through `properties`, `items` or the like]",
        ],
    );
}

#[test]
fn a_reference_to_the_root_itself_is_refused() {
    check(
        r##"{"$ref": "#"}"##,
        &[
            "schema-unbounded-cost /$ref Value: validation would never end: this `$ref` refers back to itself for the same value [a recursive reference must go through `properties`, `items` or the like]",
        ],
    );
}

#[test]
fn recursion_through_children_is_accepted() {
    check(
        r##"{"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}"##,
        &[],
    );
}

/// Schemas from the wild that are recursive, refused by mistake: ten alternatives a level, each with
/// a recursive member of another name, which the bound counts as if they met in one member.
const TOO_STRICT: &[&str] = &["SchemaStore intlayer"];

#[test]
fn recursive_schemas_of_public_projects_pass() {
    let Some(file) = crate::corpora::corpus("recursive_schemas.jsonl") else { return };
    let text = std::fs::read_to_string(file).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused: Vec<&str> = cases
        .iter()
        .filter(|case| !is_bounded(&case["schema"]))
        .filter_map(|case| case["source"].as_str())
        .collect();
    assert_eq!(refused, TOO_STRICT);
    assert_eq!(cases.len(), 60);
}

/// The cost check alone: most schemas from the wild are not strict.
fn is_bounded(schema: &Value) -> bool {
    let mut report = Report::default();
    let contents = meta_schema::check(schema, &mut report);
    let mut resolver = RefResolver::new(schema);
    resolver.collect_ids(&mut report);
    let mut linter = Linter::new(Report::default(), resolver);
    linter.run(schema);
    let mut report = Report::default();
    super::check(schema, &linter.targets, &contents.dynamic_anchors, &mut report);
    report.is_empty()
}

#[test]
fn a_huge_fan_out_is_refused_without_following_it() {
    // Following each of the 2^60 paths would never end.
    let problems = lint(&fan_out(60));
    assert_eq!(problems.iter().map(|problem| problem.code).collect::<Vec<_>>(), ["schema-unbounded-cost"]);
    assert_eq!(lint(&fan_out(10)), []);
}

fn fan_out(levels: usize) -> Value {
    let mut schema = json!({"$ref": "#/$defs/d0", "$defs": {}});
    for level in 0..levels {
        let next = format!("#/$defs/d{}", level + 1);
        schema["$defs"][format!("d{level}")] = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
    }
    schema["$defs"][format!("d{levels}")] = json!({"type": "string"});
    schema
}

#[test]
fn a_long_chain_of_references_does_not_overflow_the_stack() {
    let mut schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {}});
    for level in 0..5000 {
        let next = format!("#/$defs/d{}", level + 1);
        schema["$defs"][format!("d{level}")] = json!({"type": "object", "properties": {"a": {"$ref": next}}});
    }
    schema["$defs"]["d5000"] = json!({"type": "string"});
    assert_eq!(lint(&schema), []);
}

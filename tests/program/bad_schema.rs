//! Hostile content (deep, recursive, costly, hidden characters) is refused or handled quickly.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{HANDLER, Project, Run, run_within};

/// Generous, for a debug build on a busy machine.
const QUICK: Duration = Duration::from_secs(20);
const TOP_K: &str = "{ \"type\": \"integer\", \"minimum\": 1, \"maximum\": 10, \"default\": 3 }";

fn check(project: &Project) -> Run {
    run_within(project.command(&["check", "--format", "json"]), QUICK).expect_names_in_messages()
}

/// A project whose one tool has this schema for its parameter `top_k`.
fn with_property(property: &Value) -> Project {
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", TOP_K, &property.to_string());
    project
}

fn codes(run: &Run) -> Vec<String> {
    run.found().iter().map(|found| found.rsplit(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn json_ten_thousand_levels_deep_is_refused() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let project = Project::with(&["note-find"]);
    project.write("note-find/schema.json", &deep);
    let run = check(&project).expect_code(1);
    assert_eq!(codes(&run), ["json-syntax"]);
    let project = Project::with(&["note-find"]);
    project.edit("note-find/doc.md", "{ \"query\": \"opening hours\" }", &deep);
    assert_eq!(codes(&check(&project).expect_code(1)), ["example-syntax"]);
    let project = with_property(&json!({"$ref": "../_shared/deep.json"}));
    project.write("_shared/deep.json", &deep);
    assert_eq!(codes(&check(&project).expect_code(1)), ["schema-shared-ref"]);
}

#[test]
fn a_schema_ten_thousand_levels_deep_is_refused() {
    let deep = format!("{}{{}}{}", "{\"not\":".repeat(10_000), "}".repeat(10_000));
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", TOP_K, &deep);
    assert_eq!(codes(&check(&project).expect_code(1)), ["json-syntax"]);
}

#[test]
fn a_handler_ten_thousand_levels_deep_is_refused() {
    let project = Project::with(&["note-find"]);
    let deep = format!("{HANDLER}export const deep = {}1{};\n", "[".repeat(10_000), "]".repeat(10_000));
    project.write("note-find/handler.js", deep);
    assert_eq!(codes(&check(&project).expect_code(1)), ["handler-too-deep"]);
}

#[test]
fn references_that_multiply_are_refused() {
    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
        definitions.insert(format!("l{level}"), json!({"allOf": [next, next, next, next]}));
    }
    definitions.insert("l30".to_owned(), json!({"type": "integer"}));
    let project = with_property(&json!({"$ref": "#/$defs/l0"}));
    let own = format!("\"$defs\": {}, \"required\"", Value::Object(definitions));
    project.edit("note-find/schema.json", "\"required\"", &own);
    assert_eq!(codes(&check(&project).expect_code(1)), ["schema-unbounded-cost"]);
}

#[test]
fn shared_files_that_refer_to_each_other_endlessly_are_refused() {
    let project = with_property(&json!({"$ref": "../_shared/a.json"}));
    project.write("_shared/a.json", "{ \"allOf\": [{ \"$ref\": \"b.json\" }] }");
    project.write("_shared/b.json", "{ \"allOf\": [{ \"$ref\": \"a.json\" }] }");
    assert_eq!(codes(&check(&project).expect_code(1)), ["schema-unbounded-cost"]);
}

#[test]
fn a_recursive_schema_that_ends_with_its_value_is_fine() {
    let tree = json!({"type": "object", "additionalProperties": false, "properties": {
        "left": {"$ref": "#/properties/top_k"}, "right": {"$ref": "#/properties/top_k"},
    }});
    check(&with_property(&tree)).expect_code(0);
}

#[test]
fn patterns_with_catastrophic_backtracking_are_refused_or_harmless() {
    let patterns =
        ["^(a+)+$", "^(a|a)*$", "^(.*.*)*x$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$", "(?=(a+)+$)b"];
    for pattern in patterns {
        let project = with_property(&json!({"type": "string", "pattern": pattern}));
        let evil = format!("{{ \"query\": \"x\", \"top_k\": \"{}!\" }}", "a".repeat(1_000));
        project.edit("note-find/doc.md", "{ \"query\": \"opening hours\" }", &evil);
        let run = check(&project).expect_code(1);
        let found = codes(&run);
        let known = ["example-refused", "schema-pattern-too-costly", "schema-bad-pattern"];
        assert!(found.len() == 1 && known.contains(&found[0].as_str()), "{pattern}: {found:?}");
    }
}

#[test]
fn a_pattern_that_repeats_without_bound_is_refused() {
    for pattern in ["^a{1,999999999}$", "((a{1,999}){1,999}){1,999}"] {
        let run = check(&with_property(&json!({"type": "string", "pattern": pattern}))).expect_code(1);
        assert!(codes(&run)[0].starts_with("schema-"), "{:?}", run.found());
    }
}

#[test]
fn duplicate_keys_are_refused_in_every_file() {
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", "\"minLength\": 1", "\"minLength\": 1, \"minLength\": 2");
    project.edit("note-find/doc.md", "\"opening hours\"", "\"opening hours\", \"query\": \"again\"");
    let expected =
        ["note-find/doc.md:20:29 json-duplicate-key", "note-find/schema.json:16:87 json-duplicate-key"];
    assert_eq!(check(&project).expect_code(1).found(), expected);
}

#[test]
fn duplicate_keys_of_a_shared_definition_are_refused() {
    let project = with_property(&json!({"$ref": "../_shared/count.json"}));
    project.write("_shared/count.json", "{ \"type\": \"integer\", \"type\": \"string\" }");
    check(&project).expect_code(1);
}

#[test]
fn hidden_characters_of_a_shared_definition_are_refused() {
    let project = with_property(&json!({"$ref": "../_shared/count.json"}));
    project.write("_shared/count.json", "{ \"type\": \"integer\", \"description\": \"many\\u202E\" }");
    assert_eq!(codes(&check(&project).expect_code(1)), ["hidden-unicode"]);
}

#[test]
fn a_shared_definition_with_windows_line_ends_or_a_byte_order_mark_is_refused() {
    let project = with_property(&json!({"$ref": "../_shared/count.json"}));
    for text in ["\u{feff}{ \"type\": \"integer\" }", "{\r\n\"type\": \"integer\"\r\n}"] {
        project.write("_shared/count.json", text);
        let run = check(&project);
        assert_eq!(run.code, 1, "{text:?}: {run:?}");
    }
}

#[test]
fn hidden_characters_are_found_in_every_text_that_a_model_reads() {
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", "What to look", "What\\u2066 to look");
    project.edit(
        "note-find/schema.json",
        "\"maximum\": 10",
        "\"title\": \"t\\uDB40\\uDC41\", \"maximum\": 10",
    );
    project.edit("note-find/doc_summary.md", "meaning", "mea\u{200b}ning");
    project.edit("note-find/doc.md", "Nothing", "Noth\u{00ad}ing\u{202e}");
    let expected = [
        "note-find/doc.md:13:11 hidden-unicode",
        "note-find/doc.md:13:7 hidden-unicode",
        "note-find/doc_summary.md:1:24 hidden-unicode",
        "note-find/schema.json:16:51 hidden-unicode",
        "note-find/schema.json:17:60 hidden-unicode",
    ];
    assert_eq!(check(&project).expect_code(1).found(), expected);
}

#[test]
fn a_mistake_in_a_shared_definition_is_shown_there_and_once() {
    let project = with_property(&json!({"$ref": "../_shared/count.json"}));
    project.add_tool("note-read");
    project.edit("note-read/schema.json", TOP_K, "{ \"$ref\": \"../_shared/count.json\" }");
    project.write("_shared/count.json", "{\n  \"type\": \"integer\",\n  \"minimun\": 1\n}\n");
    assert_eq!(check(&project).found(), ["note-find/../_shared/count.json:3:3 schema-unknown-keyword"]);
    let run = project.run(&["check"]).expect_code(1);
    run.expect_stderr(&["tools/_shared/count.json:3:3", "did you mean `minimum`?"]);
}

#[test]
fn a_pattern_with_lookahead_is_fast_on_a_long_text() {
    let project = with_property(&json!({"type": "string", "pattern": "(?=(a+)+$)b"}));
    let long = format!("{{ \"query\": \"x\", \"top_k\": \"{}!\" }}", "a".repeat(300_000));
    project.edit("note-find/doc.md", "{ \"query\": \"opening hours\" }", &long);
    check(&project).expect_code(1);
}

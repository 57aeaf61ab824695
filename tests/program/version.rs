//! The changes that change `version` and `contentDigest`, and those that do not.

use serde_json::Value;

use super::support::{HANDLER, Project};

struct Identity {
    version: Value,
    digest: Value,
}

fn identity(project: &Project) -> Identity {
    project.build();
    let artifact = project.artifact_json();
    Identity { version: artifact["version"].clone(), digest: artifact["contentDigest"].clone() }
}

#[test]
fn the_version_changes_with_every_field_and_document() {
    let edits = [
        ("schema.json", "Find notes.", "Find some notes."),
        ("schema.json", "What to look for", "What to search for"),
        ("schema.json", "\"maximum\": 10", "\"maximum\": 11"),
        ("schema.json", "\"1.0.0\"", "\"1.0.1\""),
        ("schema.json", "800", "801"),
        ("schema.json", "[\"text\", \"voice\"]", "[\"text\"]"),
        ("schema.json", "\"parameters\"", "\"tags\": [\"notes\"],\n  \"parameters\""),
        ("doc_summary.md", "notes", "your notes"),
        ("doc.md", "best first", "the best one first"),
    ];
    for (file, from, to) in edits {
        let project = Project::with(&["note-find", "note-read"]);
        let before = identity(&project);
        project.edit(&format!("note-find/{file}"), from, to);
        let after = identity(&project);
        assert_ne!(before.version, after.version, "{from} → {to}");
        assert_ne!(before.digest, after.digest, "{from} → {to}");
    }
}

#[test]
fn a_changed_handler_changes_the_digest_and_not_the_version() {
    let project = Project::with(&["note-find"]);
    let before = identity(&project);
    project.edit("note-find/handler.js", "return", "// quick\n  return");
    let after = identity(&project);
    assert_eq!(before.version, after.version);
    assert_ne!(before.digest, after.digest);
}

#[test]
fn a_module_that_the_handler_imports_changes_the_digest_too() {
    let project = Project::with(&["note-find"]);
    project.write(
        "note-find/handler.js",
        format!("import {{ a }} from './lib/a.js';\n{}", HANDLER.replace("args.query", "a(args.query)")),
    );
    project.write("note-find/lib/a.js", "import { b } from '../b.js';\nexport const a = (x) => b(x);\n");
    project.write("note-find/b.js", "export const b = (x) => x;\n");
    let first = identity(&project);
    project.edit("note-find/b.js", "=> x", "=> x + 1");
    let second = identity(&project);
    project.edit("note-find/lib/a.js", "=> b(x)", "=> b(x + 1)");
    let third = identity(&project);
    assert_eq!([&first.version, &first.version], [&second.version, &third.version]);
    assert_ne!(first.digest, second.digest);
    assert_ne!(second.digest, third.digest);
}

#[test]
fn white_space_and_the_order_of_keys_in_a_schema_do_not_change_the_version() {
    let project = Project::with(&["note-find"]);
    let before = identity(&project);
    let query =
        "\"query\": { \"type\": \"string\", \"description\": \"What to look for\", \"minLength\": 1 }";
    let moved =
        "\"query\": {\"minLength\": 1,\n\t\"description\": \"What to look for\", \"type\": \"string\"}";
    project.edit("note-find/schema.json", query, moved);
    project.edit("note-find/schema.json", "  \"version\": \"1.0.0\",\n", "");
    project.edit("note-find/schema.json", "\"parameters\"", "\"version\":\"1.0.0\", \"parameters\"");
    assert_eq!(before.version, identity(&project).version);
}

#[test]
fn the_version_does_not_depend_on_the_location_of_artifact_or_tools() {
    let (one, two) = (Project::with(&["note-find"]), Project::with(&["note-find"]));
    let (first, second) = (identity(&one), identity(&two));
    assert_eq!((first.version, first.digest), (second.version, second.digest));
}

#[test]
fn check_and_build_agree_on_the_version() {
    let project = Project::with(&["note-find"]);
    let checked = project.check().json()["version"].clone();
    assert_eq!(identity(&project).version, checked);
}

#[test]
fn a_shared_definition_that_a_tool_uses_changes_the_version() {
    let project = Project::with(&["note-find"]);
    project.write("_shared/count.json", "{ \"type\": \"integer\", \"minimum\": 1 }");
    let own = "{ \"type\": \"integer\", \"minimum\": 1, \"maximum\": 10, \"default\": 3 }";
    project.edit("note-find/schema.json", own, "{ \"$ref\": \"../_shared/count.json\" }");
    let before = identity(&project);
    project.edit("_shared/count.json", "1", "2");
    assert_ne!(before.version, identity(&project).version);
}

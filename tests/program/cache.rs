//! The incremental build: skips unchanged tools, and notices every change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::support::{HANDLER, Project, assert_same};

const CACHE: &str = ".tool_registry.json.cache";

/// Text, modification time and inode of the artifact.
fn state(project: &Project) -> (String, i64, i64, u64) {
    let metadata = fs::metadata(project.artifact()).unwrap();
    (
        String::from_utf8(project.artifact_bytes()).unwrap(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ino(),
    )
}

/// A built project whose files are old enough for the cache.
fn settled() -> Project {
    let project = Project::with(&["note-find", "note-read"]);
    project.settle();
    project
}

/// The next build notices the change, and equals a build without a cache.
fn expect_noticed(project: &Project, what: &str) {
    let before = project.artifact_json()["contentDigest"].clone();
    project.build();
    let after = project.artifact_json();
    assert_ne!(before, after["contentDigest"], "{what} was not noticed");
    let cached = project.pinned_bytes(&[]);
    assert_same(&cached, &project.pinned_bytes(&["--no-cache"]), what);
}

#[test]
fn a_build_without_a_change_leaves_the_artifact_untouched() {
    let project = settled();
    let before = state(&project);
    project.build().expect_stderr(&["unchanged tools/tool_registry.json: 2 tools", "2 from the cache"]);
    assert_eq!(state(&project), before);
}

#[test]
fn touching_a_file_without_changing_it_leaves_the_artifact_untouched() {
    let project = settled();
    let before = state(&project);
    project.write("note-find/handler.js", HANDLER);
    project.build();
    assert_eq!(state(&project), before);
}

#[test]
fn a_build_of_rewritten_files_with_the_same_content_leaves_the_artifact_untouched() {
    let project = Project::with(&["note-find"]);
    project.build();
    let before = state(&project);
    project.build();
    assert_eq!(state(&project), before);
}

#[test]
fn a_linked_tool_that_did_not_change_leaves_the_artifact_untouched() {
    let project = Project::with(&["note-find"]);
    fs::create_dir(project.path("_store")).unwrap();
    fs::rename(project.path("note-find"), project.path("_store/note-find")).unwrap();
    std::os::unix::fs::symlink("_store/note-find", project.path("note-find")).unwrap();
    project.build();
    let before = state(&project);
    project.build();
    assert_eq!(state(&project), before);
}

#[test]
fn warnings_are_repeated_when_nothing_changed() {
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", "800", "1500");
    project.settle();
    let run = project.build().expect_stderr(&["unchanged ", "warning[voice-latency]", "(1 warning)"]);
    assert_eq!(run.stdout, "");
    assert_eq!(
        project.run(&["build", "--format", "json"]).found(),
        ["note-find/schema.json:10:22 voice-latency"]
    );
}

#[test]
fn a_changed_deleted_or_truncated_artifact_is_built_again() {
    let project = settled();
    let expected = project.pinned_bytes(&[]);
    let text = String::from_utf8(expected.clone()).unwrap();
    for damaged in [text.replace("Find notes.", "Find money"), text[..300].to_owned(), String::new()] {
        fs::write(project.artifact(), damaged).unwrap();
        assert_same(&project.pinned_bytes(&[]), &expected, "built again");
    }
    fs::remove_file(project.artifact()).unwrap();
    assert_same(&project.pinned_bytes(&[]), &expected, "built again");
}

#[test]
fn a_damaged_or_foreign_cache_is_ignored() {
    let project = settled();
    let expected = project.pinned_bytes(&[]);
    let cache = fs::read(project.path(CACHE)).unwrap();
    let mut flipped = cache.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    let foreign = Project::with(&["note-find"]);
    foreign.settle();
    let other = fs::read(foreign.path(CACHE)).unwrap();
    let huge = [0xff_u8; 64].to_vec();
    for bad in [Vec::new(), b"{}".to_vec(), cache[..cache.len() / 2].to_vec(), flipped, other, huge] {
        fs::write(project.path(CACHE), bad).unwrap();
        assert_same(&project.pinned_bytes(&[]), &expected, "built again");
    }
    project.remove(CACHE);
    fs::create_dir(project.path(CACHE)).unwrap();
    assert_same(&project.pinned_bytes(&[]), &expected, "built again");
}

#[test]
fn every_kind_of_change_is_noticed() {
    let edits: [(&str, &str, &str); 4] = [
        ("schema.json", "Find notes", "Find papers"),
        ("doc_summary.md", "notes", "words"),
        ("doc.md", "best first", "first best"),
        ("handler.js", "ok: true", "ok: !0"),
    ];
    for (file, from, to) in edits {
        let project = settled();
        project.edit(&format!("note-read/{file}"), from, to);
        expect_noticed(&project, file);
    }
}

#[test]
fn a_change_whose_time_was_set_back_is_noticed() {
    let project = settled();
    let (handler, reference) = (project.path("note-find/handler.js"), project.dir().join("reference"));
    let touch = |from: &std::path::Path, to: &std::path::Path| {
        assert!(Command::new("touch").arg("-r").arg(from).arg(to).status().unwrap().success());
    };
    fs::write(&reference, "").unwrap();
    touch(&handler, &reference);
    project.edit("note-find/handler.js", "true", "!!1 ");
    touch(&reference, &handler);
    expect_noticed(&project, "a file of the same size and time");
}

#[test]
fn an_added_or_removed_tool_is_noticed() {
    let project = settled();
    project.add_tool("a-new");
    expect_noticed(&project, "a new tool");
    project.settle();
    project.remove("note-find");
    expect_noticed(&project, "a removed tool");
    assert_eq!(project.artifact_json()["tools"].as_array().unwrap().len(), 2);
}

#[test]
fn a_renamed_tool_is_noticed() {
    let project = settled();
    fs::rename(project.path("note-find"), project.path("note-seek")).unwrap();
    let found = project.run(&["build", "--format", "json"]).expect_code(1).found();
    assert_eq!(found, ["note-seek/schema.json:2:13 tool-id-mismatch"]);
    project.edit("note-seek/schema.json", "note_find", "note_seek");
    expect_noticed(&project, "a renamed tool");
}

#[test]
fn a_second_handler_is_noticed() {
    let project = settled();
    project.write("note-find/handler.wasm", "\0asm");
    let found = project.run(&["build", "--format", "json"]).expect_code(1).found();
    assert_eq!(found, ["note-find/handler.wasm:1:1 handler-kind"]);
}

#[test]
fn a_removed_file_is_noticed() {
    for file in ["schema.json", "doc_summary.md", "doc.md", "handler.js"] {
        let project = settled();
        project.remove(&format!("note-find/{file}"));
        let found = project.run(&["build", "--format", "json"]).expect_code(1).found();
        assert_eq!(found, [format!("note-find/{file}:1:1 file-missing")]);
    }
}

#[test]
fn a_changed_or_removed_sibling_module_is_noticed() {
    let project = Project::with(&["note-find", "note-read"]);
    let import = "import { n } from './lib/n.js';\n".to_owned();
    project.write("note-find/handler.js", import + &HANDLER.replace("args.query", "n"));
    project.write("note-find/lib/n.js", "export const n = 1;\n");
    project.settle();
    project.edit("note-find/lib/n.js", "1", "2");
    expect_noticed(&project, "a sibling module");
    project.settle();
    project.remove("note-find/lib/n.js");
    let found = project.run(&["build", "--format", "json"]).expect_code(1).found();
    assert_eq!(found, ["note-find/handler.js:1:19 handler-import-missing"]);
}

#[test]
fn a_changed_shared_definition_is_noticed() {
    let project = Project::with(&["note-find", "note-read"]);
    project.write("_shared/count.json", "{ \"type\": \"integer\", \"minimum\": 1 }");
    let own = "{ \"type\": \"integer\", \"minimum\": 1, \"maximum\": 10, \"default\": 3 }";
    project.edit("note-find/schema.json", own, "{ \"$ref\": \"../_shared/count.json\" }");
    project.settle();
    project.edit("_shared/count.json", "1", "2");
    expect_noticed(&project, "a shared definition");
}

#[test]
fn a_failed_build_does_not_affect_the_next_one() {
    let project = settled();
    let expected = project.pinned_bytes(&[]);
    project.edit("note-find/schema.json", "\"1.0.0\"", "\"one\"");
    project.run(&["build"]).expect_code(1);
    assert_same(&project.artifact_bytes(), &expected, "untouched");
    project.edit("note-find/schema.json", "\"one\"", "\"1.0.0\"");
    assert_same(&project.pinned_bytes(&[]), &expected, "built again");
}

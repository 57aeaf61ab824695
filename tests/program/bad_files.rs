//! Wrong files and directories: a clear message, exit code 1, nothing written.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::support::{DOC, HANDLER, Project, SCHEMA, SUMMARY};

const FILES: [&str; 4] = ["schema.json", "doc_summary.md", "doc.md", "handler.js"];

/// `build` and `check` both fail with exactly these diagnostics; the old artifact is unchanged.
fn refused(project: &Project, found: &[&str]) {
    fs::write(project.artifact(), "old").unwrap();
    let build = project.run(&["build", "--format", "json"]).expect_code(1);
    assert_eq!(build.found(), found);
    assert_eq!(project.check().expect_code(1).found(), found);
    for finding in found {
        let file = finding.split(':').next().unwrap().trim_start_matches('/');
        project.run(&["build"]).expect_code(1).expect_stderr(&[file.trim_end_matches('/'), "error["]);
    }
    assert_eq!(project.artifact_bytes(), b"old");
    assert_eq!(project.loose_files(), ["tool_registry.json"], "litter");
}

#[test]
fn each_missing_file_is_named() {
    for file in FILES {
        let project = Project::with(&["note-find", "note-read"]);
        project.remove(&format!("note-find/{file}"));
        refused(&project, &[&format!("note-find/{file}:1:1 file-missing")]);
    }
}

#[test]
fn a_file_with_nearly_the_right_name_is_suggested() {
    let slips = [
        ("schema.json", "schemas.json"),
        ("doc_summary.md", "doc-summary.md"),
        ("doc.md", "docs.md"),
        ("handler.js", "Handler.js"),
    ];
    for (file, slip) in slips {
        let project = Project::with(&["note-find"]);
        fs::rename(project.path("note-find").join(file), project.path("note-find").join(slip)).unwrap();
        refused(&project, &[&format!("note-find/{file}:1:1 file-missing")]);
        let run = project.check();
        assert_eq!(run.json()["diagnostics"][0]["help"], format!("rename `{slip}` to `{file}`"));
    }
}

#[test]
fn a_directory_or_a_pipe_in_place_of_a_file_is_refused_and_does_not_hang() {
    for file in FILES {
        let expected = format!("note-find/{file}:1:1 file-unreadable");
        let project = Project::with(&["note-find"]);
        let path = project.path("note-find").join(file);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        refused(&project, &[&expected]);
        fs::remove_dir(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        refused(&project, &[&expected]);
    }
}

#[test]
fn bytes_that_are_not_plain_utf8_text_are_refused_in_each_file() {
    let texts = [SCHEMA, SUMMARY, DOC, HANDLER];
    for (file, text) in FILES.into_iter().zip(texts) {
        let text = text.replace("TOOL_ID", "note_find");
        let path = format!("note-find/{file}");
        let project = Project::with(&["note-find"]);
        project.write(&path, [text.as_bytes(), b"\xff\xfe"].concat());
        let line = text.matches('\n').count() + 1;
        refused(&project, &[&format!("{path}:{line}:1 file-not-utf8")]);
        project.write(&path, format!("\u{feff}{text}"));
        refused(&project, &[&format!("{path}:1:1 file-bom")]);
        project.write(&path, text.replace('\n', "\r\n"));
        let found = project.check().found();
        assert!(found.len() == 1 && found[0].ends_with(" file-crlf"), "{found:?}");
    }
}

#[test]
fn windows_line_ends_are_shown_where_they_begin() {
    let project = Project::with(&["note-find"]);
    project.write("note-find/doc_summary.md", "Find notes.\nAll of them.\r\n");
    refused(&project, &["note-find/doc_summary.md:2:13 file-crlf"]);
}

#[test]
fn a_file_of_three_megabytes_is_refused() {
    for file in FILES {
        let project = Project::with(&["note-find"]);
        project.write(&format!("note-find/{file}"), vec![b' '; 3 * 1024 * 1024]);
        refused(&project, &[&format!("note-find/{file}:1:1 file-too-large")]);
    }
}

#[test]
fn an_empty_tool_directory_reports_all_four_missing_files() {
    let project = Project::with(&["note-read"]);
    fs::create_dir(project.path("note-find")).unwrap();
    let mut expected = FILES.map(|file| format!("note-find/{file}:1:1 file-missing"));
    expected.sort();
    refused(&project, &expected.each_ref().map(String::as_str));
}

#[test]
fn a_tools_directory_without_tools_is_a_warning() {
    let project = Project::empty();
    project.write("_draft/schema.json", "{}");
    project.write(".hidden/schema.json", "{}");
    project.write("README.md", "not a tool");
    assert_eq!(project.check().expect_code(0).found(), ["/:1:1 no-tools"]);
}

#[test]
fn a_tools_directory_that_is_missing_or_a_file_is_refused() {
    let project = Project::empty();
    fs::write(project.dir().join("file"), "").unwrap();
    for (path, message) in
        [("nowhere", "no tools directory `nowhere`"), ("file", "`file` is not a directory")]
    {
        for command in ["build", "check"] {
            project.run(&[command, path]).expect_code(1).expect_stderr(&[message, "help: "]);
            let run = project.run(&[command, path, "--format", "json"]).expect_code(1);
            assert_eq!(run.found(), ["/:1:1 tools-unreadable"]);
            assert_eq!((run.json()["ok"].clone(), run.json()["tools"].clone()), (false.into(), 0.into()));
            assert_eq!(run.stderr, "");
        }
    }
    assert!(!project.dir().join("nowhere").exists());
}

#[test]
fn directory_names_that_are_not_kebab_case_are_refused_with_a_better_one() {
    for (name, better) in
        [("Note-Find", "note-find"), ("note find", "note-find"), ("note--find", "note-find")]
    {
        let project = Project::with(&["note-read"]);
        project.add_tool(name);
        let id = better.replace('-', "_");
        project.write(&format!("{name}/schema.json"), SCHEMA.replace("TOOL_ID", &id));
        let run = project.check().expect_code(1);
        assert!(run.found().contains(&format!("{name}/:1:1 dir-name")), "{:?}", run.found());
        let found = run.json()["diagnostics"].as_array().unwrap().clone();
        let finding = found.iter().find(|found| found["code"] == "dir-name").unwrap();
        assert!(finding["help"].as_str().unwrap().contains(&format!("`{better}`")), "{finding}");
    }
}

#[test]
fn two_directories_for_one_tool_are_refused() {
    let project = Project::with(&["note-find", "note_find"]);
    refused(&project, &["note_find/:1:1 dir-duplicate", "note_find/:1:1 dir-name"]);
    project.run(&["check"]).expect_code(1).expect_stderr(&["`note-find` and `note_find` both define"]);
}

#[test]
fn links_that_go_in_circles_or_lead_nowhere_are_refused() {
    let project = Project::with(&["note-find"]);
    symlink("loop-b", project.path("loop-a")).unwrap();
    symlink("loop-a", project.path("loop-b")).unwrap();
    symlink("nothing-here", project.path("lost")).unwrap();
    let broken = ["loop-a", "loop-b", "lost"].map(|name| format!("{name}/:1:1 symlink-broken"));
    refused(&project, &broken.each_ref().map(String::as_str));
    for name in ["loop-a", "loop-b", "lost"] {
        project.remove_link(name);
    }
    project.remove("note-find/doc.md");
    symlink("doc.md", project.path("note-find/doc.md")).unwrap();
    refused(&project, &["note-find/doc.md:1:1 symlink-broken"]);
}

#[test]
fn links_that_leave_the_tools_directory_are_refused() {
    let project = Project::with(&["note-find", "note-read"]);
    fs::rename(project.path("note-read"), project.dir().join("note-read")).unwrap();
    symlink(project.dir().join("note-read"), project.path("note-read")).unwrap();
    fs::write(project.dir().join("secret.md"), DOC).unwrap();
    project.remove("note-find/doc.md");
    symlink("../../secret.md", project.path("note-find/doc.md")).unwrap();
    refused(&project, &["note-find/doc.md:1:1 symlink-escape", "note-read/:1:1 symlink-escape"]);
}

#[test]
fn a_module_or_shared_file_that_leads_out_of_the_tools_directory_is_refused() {
    let project = Project::with(&["note-find"]);
    fs::create_dir(project.dir().join("lib")).unwrap();
    fs::write(project.dir().join("lib/n.js"), "export const n = 1;\n").unwrap();
    fs::write(project.dir().join("count.json"), "{ \"type\": \"integer\" }").unwrap();
    symlink(project.dir().join("lib"), project.path("note-find/lib")).unwrap();
    let import = "import { n } from './lib/n.js';\n".to_owned();
    project.write("note-find/handler.js", import + &HANDLER.replace("args.query", "n"));
    refused(&project, &["note-find/handler.js:1:19 handler-import-missing"]);
    project.write("note-find/handler.js", HANDLER);
    project.write("_shared/other.json", "{}");
    symlink(project.dir().join("count.json"), project.path("_shared/count.json")).unwrap();
    project.edit(
        "note-find/schema.json",
        "{ \"type\": \"integer\", \"minimum\": 1, \"maximum\": 10, \"default\": 3 }",
        "{ \"$ref\": \"../_shared/count.json\" }",
    );
    refused(&project, &["note-find/schema.json:17:26 schema-shared-ref"]);
}

#[test]
fn links_that_stay_inside_the_tools_directory_work() {
    let project = Project::with(&["note-find", "note-read"]);
    fs::create_dir(project.path("_store")).unwrap();
    fs::rename(project.path("note-read"), project.path("_store/note-read")).unwrap();
    symlink("_store/note-read", project.path("note-read")).unwrap();
    project.remove("note-find/doc.md");
    symlink("../_store/note-read/doc.md", project.path("note-find/doc.md")).unwrap();
    project.build();
    assert_eq!(project.artifact_json()["tools"].as_array().unwrap().len(), 2);
}

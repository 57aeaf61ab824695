//! Artifacts that cannot be written: the old one is unchanged, and no temporary file remains.

use std::fs;

use super::support::{Project, TIMEOUT, run, run_within, shell_in};

/// Every path below the project's directory, to find leftover files.
fn listing(project: &Project) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut waiting = vec![project.dir().to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            names.push(entry.path().to_string_lossy().into_owned());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    names.sort();
    names
}

#[test]
fn an_output_in_a_missing_directory_creates_it_once_the_tools_build() {
    let project = Project::with(&["note-find"]);
    let handler = fs::read(project.path("note-find/handler.js")).unwrap();
    project.write("note-find/handler.js", "export async function execute( {");
    let before = listing(&project);
    let args = ["build", "--out", "new/deep/registry.json"];
    project.run(&args).expect_code(1);
    assert_eq!(listing(&project), before);
    project.write("note-find/handler.js", handler);
    project.run(&args).expect_code(0);
    assert!(project.dir().join("new/deep/registry.json").is_file());
}

#[test]
fn an_output_that_is_a_directory_is_refused() {
    let project = Project::with(&["note-find"]);
    fs::create_dir(project.dir().join("dist")).unwrap();
    let before = listing(&project);
    project.run(&["build", "--out", "dist"]).expect_code(1).expect_stderr(&["dist", "it is a directory"]);
    project.run(&["build", "--out", "dist/"]).expect_code(1).expect_stderr(&["dist", "it is a directory"]);
    assert_eq!(listing(&project), before);
}

#[test]
fn an_output_below_a_file_is_refused() {
    let project = Project::with(&["note-find"]);
    fs::write(project.dir().join("file"), "").unwrap();
    let before = listing(&project);
    project
        .run(&["build", "--out", "file/registry.json"])
        .expect_code(1)
        .expect_stderr(&["file/registry.json"]);
    assert_eq!(listing(&project), before);
}

#[test]
fn an_output_that_is_a_device_is_not_replaced_by_a_file() {
    use std::os::unix::fs::FileTypeExt;
    let project = Project::with(&["note-find"]);
    let pipe = project.dir().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    run_within(project.command(&["build", "--out", "pipe"]), TIMEOUT).expect_code(1);
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_full_disk_leaves_the_old_artifact_and_no_temporary_files() {
    let project = Project::reference();
    project.settle();
    let old = project.artifact_bytes();
    project.edit("kb-get/doc.md", "## Summary\n", "## Summary\nNew words. ");
    let before = listing(&project);
    // A limit of one block per file simulates a full disk.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let command = shell_in(project.dir(), script, &["build"]);
    run(command)
        .expect_code(1)
        .expect_stderr(&["cannot write `tools/tool_registry.json`", "help: free some space"]);
    let command = shell_in(project.dir(), script, &["build", "--format", "json"]);
    assert_eq!(run(command).expect_code(1).found(), ["/:1:1 artifact-unwritable"]);
    assert!(project.artifact_bytes() == old);
    assert_eq!(listing(&project), before);
    project.build();
    assert!(project.artifact_bytes() != old);
}

#[test]
fn a_disk_too_full_for_the_cache_does_not_fail_the_build() {
    let project = Project::with(&["note-find"]);
    fs::create_dir(project.path(".tool_registry.json.cache")).unwrap();
    project.build();
    assert_eq!(project.loose_files(), ["tool_registry.json"]);
}

#[test]
fn a_link_in_place_of_the_artifact_is_followed_or_replaced_atomically() {
    let project = Project::with(&["note-find"]);
    fs::write(project.dir().join("real.json"), "old").unwrap();
    std::os::unix::fs::symlink("../real.json", project.artifact()).unwrap();
    project.build();
    assert_eq!(project.artifact_json()["formatVersion"], 1);
    project.run(&["list", "--artifact", "tools/tool_registry.json"]).expect_code(0);
}

#[test]
fn old_temporary_files_of_a_killed_build_are_removed() {
    let project = Project::with(&["note-find"]);
    let (old, young) = (".tool_registry.json.1.tmp", ".tool_registry.json.2.tmp");
    project.write(old, "{");
    project.write(young, "{");
    let touched =
        std::process::Command::new("touch").args(["-d", "2 hours ago"]).arg(project.path(old)).status();
    assert!(touched.unwrap().success());
    project.run(&["build", "--no-cache"]).expect_code(0);
    assert_eq!(project.loose_files(), [young, "tool_registry.json"]);
}

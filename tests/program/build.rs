//! `toolwright build`: the content and place of the artifact, and the JSON report.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::support::{Project, repository, run};

#[test]
fn the_reference_toolset_builds_without_errors() {
    let project = Project::reference();
    let report = project.run(&["build", "--format", "json"]).expect_code(0).json();
    let artifact = project.artifact_json();
    let expected =
        json!({"ok": true, "version": artifact["version"], "tools": 14, "diagnostics": warnings()});
    assert_eq!(report, expected);
    let keys: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["ok", "version", "tools", "diagnostics"]);
}

/// The intended warnings of the reference toolset.
fn warnings() -> Value {
    let report = Project::reference().check().expect_code(0).json();
    let codes = report["diagnostics"].as_array().unwrap().iter().map(|found| found["code"].clone());
    let mut codes: Vec<Value> = codes.collect();
    codes.dedup();
    assert_eq!(codes, ["writes-unconfirmed"]);
    report["diagnostics"].clone()
}

#[test]
fn the_artifact_has_exactly_the_documented_members() {
    let project = Project::reference();
    project.build();
    let artifact = project.artifact_json();
    let keys: Vec<_> = artifact.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["formatVersion", "version", "contentDigest", "gitCommit", "buildTimestamp", "tools"]);
    assert_eq!(artifact["formatVersion"], 1);
    assert_eq!(artifact["gitCommit"], Value::Null, "a temporary directory is in no repository");
    let version = artifact["version"].as_str().unwrap();
    let digits = version.strip_prefix("1.0.").unwrap();
    assert!(digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{version}");
    let ids: Vec<_> =
        artifact["tools"].as_array().unwrap().iter().map(|tool| tool["toolId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 14);
    assert!(ids.is_sorted());
}

#[test]
fn a_tool_in_the_artifact_has_every_field_of_its_schema_and_both_docs() {
    let project = Project::reference();
    project.build();
    for tool in project.artifact_json()["tools"].as_array().unwrap() {
        let directory = tool["toolId"].as_str().unwrap().replace('_', "-");
        let read = |name: &str| fs::read_to_string(project.path(&directory).join(name)).unwrap();
        let mut expected: Value = serde_json::from_str(&read("schema.json")).unwrap();
        let members = expected.as_object_mut().unwrap();
        let parameters = members.remove("parameters").unwrap();
        members.insert("jsonSchema".to_owned(), parameters);
        members.insert("summary".to_owned(), read("doc_summary.md").trim().into());
        members.insert("documentation".to_owned(), read("doc.md").into());
        members.insert("handlerPath".to_owned(), format!("{directory}/handler.js").into());
        members.insert("handlerSha256".to_owned(), sha256_of(&project, &directory).into());
        assert_eq!(tool, &expected);
    }
}

fn sha256_of(project: &Project, directory: &str) -> String {
    let path = project.path(directory).join("handler.js");
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn handler_paths_lead_from_the_artifact_to_the_handlers_wherever_it_is_written() {
    let project = Project::with(&["note-find", "note-read"]);
    fs::create_dir_all(project.dir().join("dist/deep")).unwrap();
    for out in ["here.json", "dist/deep/registry.json", "tools/other.json", "tools/note-find/inside.json"] {
        project.run(&["build", "--out", out]).expect_code(0);
        let out = project.dir().join(out);
        let artifact: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
        for tool in artifact["tools"].as_array().unwrap() {
            let path = tool["handlerPath"].as_str().unwrap();
            assert!(!path.starts_with('/'), "{path}");
            assert!(out.parent().unwrap().join(path).is_file(), "{path} from {}", out.display());
        }
    }
}

#[test]
fn the_commit_of_the_repository_is_recorded() {
    let project = Project::with(&["note-find"]);
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        command.current_dir(project.dir()).args(identity).args(args);
        run(command).expect_code(0).stdout
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "start"]);
    let commit = git(&["rev-parse", "HEAD"]);
    project.build();
    assert_eq!(project.artifact_json()["gitCommit"], commit[..12]);
}

#[test]
fn a_failed_build_reports_without_a_version_and_exits_with_one() {
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", "\"1.0.0\"", "\"one\"");
    let run = project.run(&["build", "--format", "json"]).expect_code(1);
    let expected = json!({"ok": false, "tools": 1, "diagnostics": [{
        "severity": "error", "code": "field-value", "tool": "note-find", "file": "schema.json",
        "line": 3, "column": 14,
        "message": "`version` must be a semantic version, got `one`: unexpected character 'o' while parsing major version number",
        "help": "write major.minor.patch, such as `1.0.0`",
    }]});
    assert_eq!(run.json(), expected);
    assert_eq!(run.stderr, "");
    assert!(project.loose_files().is_empty());
}

#[test]
fn the_summary_of_a_build_is_printed_to_stderr_only() {
    let project = Project::with(&["note-find"]);
    let run = project.build().expect_stderr(&["built tools/tool_registry.json: 1 tool, version 1.0."]);
    assert_eq!(run.stdout, "");
    assert!(!run.stderr.contains('\x1b'));
}

#[test]
fn timings_are_printed_on_request() {
    let project = Project::with(&["note-find"]);
    project.run(&["build", "--timings"]).expect_code(0).expect_stderr(&["discover", "check", "write"]);
    project.run(&["check", "--timings"]).expect_code(0).expect_stderr(&["discover", "check"]);
}

#[test]
fn warnings_do_not_stop_a_build() {
    let project = Project::with(&["note-find"]);
    project.edit("note-find/schema.json", "800", "1500");
    let run = project.run(&["build", "--format", "json"]).expect_code(0);
    assert_eq!(run.found(), ["note-find/schema.json:10:22 voice-latency"]);
    assert_eq!(run.json()["ok"], true);
}

#[test]
fn the_repository_itself_builds() {
    let out = tempfile::TempDir::new().unwrap();
    let path = out.path().join("registry.json");
    let command = super::support::command_in(&repository(), &["build", "--out", path.to_str().unwrap()]);
    run(command).expect_code(0);
}

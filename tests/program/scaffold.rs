//! `new` and `init`: the created files build, and nothing is overwritten.

use std::fs;

use serde_json::json;

use super::support::{Project, run};

#[test]
fn a_new_tool_of_each_category_and_mode_builds_without_diagnostics() {
    let modes: [(&[&str], serde_json::Value); 4] = [
        (&[], json!(["text", "voice"])),
        (&["--mode", "text"], json!(["text"])),
        (&["--mode", "voice"], json!(["voice"])),
        (&["--mode", "voice", "--mode", "text"], json!(["voice", "text"])),
    ];
    for category in ["retrieval", "action", "utility"] {
        for (flags, expected) in &modes {
            let project = Project::empty();
            let args = [&["new", "my-tool", "--category", category], *flags].concat();
            project.run(&args).expect_code(0).expect_stderr(&["created tools/my-tool", "edit schema.json"]);
            let report = project.run(&["build", "--format", "json"]).expect_code(0).json();
            assert_eq!(report["diagnostics"], json!([]), "{category} {flags:?}");
            let tool = &project.artifact_json()["tools"][0];
            assert_eq!((&tool["toolId"], &tool["category"]), (&json!("my_tool"), &json!(category)));
            assert_eq!(&tool["allowedModes"], expected);
        }
    }
}

#[test]
fn a_new_tool_has_the_four_files_and_a_test() {
    let project = Project::empty();
    let run = project.run(&["new", "my-tool"]).expect_code(0);
    assert_eq!(run.stdout, "");
    for file in ["schema.json", "doc_summary.md", "doc.md", "handler.js", "tests/works.json"] {
        let text = fs::read_to_string(project.path("my-tool").join(file)).unwrap();
        for place in ["{{TOOL_ID}}", "{{NAME}}", "{{TITLE}}", "{{MODES}}"] {
            assert!(!text.contains(place), "{file} has {place}");
        }
    }
    let test = fs::read_to_string(project.path("my-tool/tests/works.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&test).unwrap();
}

#[test]
fn a_snake_case_id_is_accepted_as_the_name_of_a_new_tool() {
    let project = Project::empty();
    project.run(&["new", "weather_lookup"]).expect_code(0);
    project.build();
    assert_eq!(project.artifact_json()["tools"][0]["toolId"], "weather_lookup");
    assert!(project.path("weather-lookup").is_dir());
}

#[test]
fn an_existing_name_is_refused_and_nothing_is_changed() {
    let project = Project::with(&["note-find"]);
    let before = fs::read(project.path("note-find/schema.json")).unwrap();
    for name in ["note-find", "note_find"] {
        project.run(&["new", name]).expect_code(1).expect_stderr(&["tools/note-find already exists"]);
    }
    assert_eq!(fs::read(project.path("note-find/schema.json")).unwrap(), before);
    assert!(!project.path("note-find/tests").exists());
}

#[test]
fn invalid_tool_names_are_wrong_usage() {
    let project = Project::empty();
    let wrong =
        ["Weather", "weather lookup", "9lives", "a--b", "a-", "-", "_x", "../x", "a/b", "", "wetter-ä", "."];
    for name in wrong {
        project.run(&["new", "--", name]).expect_code(2);
        assert_eq!(fs::read_dir(project.tools()).unwrap().count(), 0, "{name}");
    }
}

#[test]
fn a_new_tool_creates_the_tools_directory() {
    let project = Project::empty();
    fs::remove_dir(project.tools()).unwrap();
    project.run(&["new", "my-tool"]).expect_code(0);
    project.build();
}

#[test]
fn a_new_project_works_with_every_command() {
    let project = Project::empty();
    let run = project.run(&["init", "deep/my-agent"]).expect_code(0);
    run.expect_stderr(&["created deep/my-agent", "toolwright build"]);
    let dir = project.dir().join("deep/my-agent");
    for args in [
        &["build", "--format", "json"][..],
        &["check"],
        &["list"],
        &["describe", "find-note"],
        &["prompt", "--mode", "voice"],
        &["prompt", "--mode", "text"],
        &["new", "my-tool"],
        &["build"],
    ] {
        let run = run_in(&dir, args);
        assert_eq!(run.code, 0, "{args:?}: {run:?}");
        assert!(!run.stderr.contains("warning"), "{args:?}: {run:?}");
    }
    assert_eq!(run_in(&dir, &["check", "--format", "json"]).json()["diagnostics"], json!([]));
    run_in(&dir, &["test"]).expect_code(0);
    // An empty knowledge base gives no results; without one, the tool reports it.
    let args = ["call", "find_note", r#"{"query": "opening hours"}"#, "--format", "json"];
    let first = run_in(&dir, &args).json();
    let is_empty = first["data"]["results"] == json!([]);
    assert!(is_empty || first["error"]["type"] == "PERMANENT", "{first}");
    assert!(fs::read_to_string(dir.join("README.md")).unwrap().starts_with("# my-agent\n"));
    assert!(fs::read_to_string(dir.join(".gitignore")).unwrap().contains("tool_registry.json"));
}

fn run_in(dir: &std::path::Path, args: &[&str]) -> super::support::Run {
    run(super::support::command_in(dir, args))
}

#[test]
fn a_project_can_be_created_in_an_empty_or_the_current_directory() {
    let project = Project::empty();
    for name in ["one", "two"] {
        fs::create_dir(project.dir().join(name)).unwrap();
    }
    project.run(&["init", "one"]).expect_code(0);
    run_in(&project.dir().join("two"), &["init", "."]).expect_code(0);
    for name in ["one", "two"] {
        let dir = project.dir().join(name);
        run_in(&dir, &["build"]).expect_code(0);
        assert!(fs::read_to_string(dir.join("README.md")).unwrap().starts_with(&format!("# {name}\n")));
    }
}

#[test]
fn a_directory_that_is_not_empty_is_refused_and_left_unchanged() {
    let project = Project::empty();
    fs::create_dir(project.dir().join("full")).unwrap();
    fs::write(project.dir().join("full/README.md"), "mine").unwrap();
    fs::write(project.dir().join("file"), "mine").unwrap();
    project.run(&["init", "full"]).expect_code(1).expect_stderr(&["full is not empty"]);
    project.run(&["init", "file"]).expect_code(1).expect_stderr(&["file"]);
    assert_eq!(fs::read_dir(project.dir().join("full")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(project.dir().join("file")).unwrap(), "mine");
    assert_eq!(fs::read_dir(project.dir()).unwrap().count(), 3, "litter");
}

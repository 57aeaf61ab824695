//! `new` and `init`: the created files build, and nothing is overwritten.

use std::fs;

use serde_json::json;

use super::support::{Project, run};

/// Every category with every template of a handler.
const TEMPLATES: [&[&str]; 4] = [&[], &["--with", "http"], &["--with", "kb"], &["--with", "callTool"]];

/// Replaces the texts of the template by others.
fn finish(project: &Project, tool: &str) {
    for file in ["schema.json", "doc_summary.md", "doc.md", "handler.js"] {
        let path = project.path(tool).join(file);
        fs::write(&path, fs::read_to_string(&path).unwrap().replace("TODO(author)", "Done")).unwrap();
    }
}

#[test]
fn a_new_tool_is_unfinished_until_its_texts_are_written_and_then_passes_its_test() {
    for category in ["retrieval", "action", "utility"] {
        for with in TEMPLATES {
            let project = Project::empty();
            let args = [&["new", "my-tool", "--category", category], with].concat();
            project.run(&args).expect_code(0).expect_stderr(&["created tools/my-tool", "edit schema.json"]);
            let report = project.check().expect_code(1).json();
            let found = report["diagnostics"].as_array().unwrap();
            assert!(
                found.iter().all(|found| found["code"] == "tool-unfinished"),
                "{category} {with:?}: {report}"
            );
            let files: Vec<&str> = found.iter().map(|found| found["file"].as_str().unwrap()).collect();
            assert_eq!(
                files,
                ["doc.md", "doc_summary.md", "handler.js", "schema.json"],
                "{category} {with:?}"
            );
            finish(&project, "my-tool");
            let report = project.run(&["build", "--format", "json"]).expect_code(0).json();
            assert_eq!(report["diagnostics"], json!([]), "{category} {with:?}");
            project.run(&["test"]).expect_code(0).expect_stderr(&["1 passed, 0 failed"]);
        }
    }
}

#[test]
fn a_new_tool_says_nothing_of_another_one() {
    let project = Project::empty();
    project.run(&["new", "weather-lookup", "--category", "retrieval"]).expect_code(0);
    for file in ["schema.json", "doc_summary.md", "doc.md", "handler.js"] {
        let text = fs::read_to_string(project.path("weather-lookup").join(file)).unwrap();
        assert!(!text.contains("note"), "{file}: {text}");
    }
    fs::create_dir(project.dir().join("prompts")).unwrap();
    for name in ["core.md", "voice-behavior.md"] {
        fs::write(project.dir().join("prompts").join(name), "Be brief.\n").unwrap();
    }
    let prompt = project.run(&["prompt", "--mode", "text"]).expect_code(1);
    prompt.expect_stderr(&["`doc_summary.md` is unfinished"]);
}

#[test]
fn the_modes_of_a_new_tool_are_those_that_were_named() {
    let modes: [(&[&str], serde_json::Value); 4] = [
        (&[], json!(["text", "voice"])),
        (&["--mode", "text"], json!(["text"])),
        (&["--mode", "voice"], json!(["voice"])),
        (&["--mode", "voice", "--mode", "text"], json!(["voice", "text"])),
    ];
    for (flags, expected) in &modes {
        let project = Project::empty();
        project.run(&[&["new", "my-tool", "--category", "action"], *flags].concat()).expect_code(0);
        finish(&project, "my-tool");
        project.build();
        let tool = &project.artifact_json()["tools"][0];
        assert_eq!((&tool["toolId"], &tool["category"]), (&json!("my_tool"), &json!("action")));
        assert_eq!(&tool["allowedModes"], expected);
    }
}

#[test]
fn editors_get_types_that_are_kept_up_to_date() {
    let project = Project::empty();
    project
        .run(&["new", "one"])
        .expect_code(0)
        .expect_stderr(&["created toolwright.d.ts", "created jsconfig.json"]);
    let types = fs::read_to_string(project.dir().join("toolwright.d.ts")).unwrap();
    let config = fs::read_to_string(project.dir().join("jsconfig.json")).unwrap();
    assert!(config.contains("\"tools/**/*.js\""), "{config}");
    let ignored = fs::read_to_string(project.dir().join(".gitignore")).unwrap();
    assert_eq!(ignored, "/tools/tool_registry.json\n/tools/.tool_registry.json.*\n/.toolwright/\n");
    fs::write(project.dir().join("toolwright.d.ts"), "// of an older version\n").unwrap();
    fs::write(project.dir().join("jsconfig.json"), "{}").unwrap();
    let again = project.run(&["new", "two"]).expect_code(0).expect_stderr(&["updated toolwright.d.ts"]);
    assert!(!again.stderr.contains("jsconfig"), "the author's own file stays: {again:?}");
    assert_eq!(fs::read_to_string(project.dir().join("toolwright.d.ts")).unwrap(), types);
    assert_eq!(fs::read_to_string(project.dir().join("jsconfig.json")).unwrap(), "{}");
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
    finish(&project, "weather-lookup");
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
    finish(&project, "my-tool");
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
        &["describe", "kb-search"],
        &["describe", "reg_describe"],
        &["prompt", "--mode", "voice"],
        &["prompt", "--mode", "text"],
    ] {
        let run = run_in(&dir, args);
        assert_eq!(run.code, 0, "{args:?}: {run:?}");
        assert!(!run.stderr.contains("warning"), "{args:?}: {run:?}");
    }
    assert_eq!(run_in(&dir, &["check", "--format", "json"]).json()["diagnostics"], json!([]));
    run_in(&dir, &["test"]).expect_code(0);
    // An empty knowledge base gives no results; without one, the tool reports it.
    let args = ["call", "kb_search", r#"{"query": "opening hours"}"#, "--format", "json"];
    let first = run_in(&dir, &args).json();
    let is_empty = first["data"]["results"] == json!([]);
    assert!(is_empty || first["error"]["type"] == "PERMANENT", "{first}");
    // The offline agent quotes the knowledge base with the tool of the project.
    fs::write(dir.join("hours.md"), "# Opening hours\n\nThe studio is open from nine to five.\n").unwrap();
    run_in(&dir, &["kb", "add", "hours.md"]).expect_code(0);
    let quoted = run_in(&dir, &["chat", "--agent", "offline", "When is the studio open?"]).expect_code(0);
    assert!(quoted.stdout.contains("> ") && quoted.stdout.contains("nine to five"), "{quoted:?}");
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
fn a_new_repository_becomes_a_project_and_its_own_files_stay() {
    let project = Project::empty();
    let dir = project.dir().join("two");
    fs::create_dir_all(dir.join(".git")).unwrap();
    for file in ["README.md", ".gitignore", "notes.txt", ".git/config"] {
        fs::write(dir.join(file), "mine").unwrap();
    }
    let made = run_in(&dir, &["init", "."]).expect_code(0);
    made.expect_stderr(&["kept your README.md", "kept your .gitignore", "add these lines to it: /tools/"]);
    for file in ["README.md", ".gitignore", "notes.txt", ".git/config"] {
        assert_eq!(fs::read_to_string(dir.join(file)).unwrap(), "mine", "{file}");
    }
    run_in(&dir, &["build"]).expect_code(0);
}

#[test]
fn a_directory_with_files_that_would_be_replaced_is_refused_and_left_unchanged() {
    let project = Project::empty();
    fs::create_dir_all(project.dir().join("full/prompts")).unwrap();
    fs::write(project.dir().join("full/prompts/core.md"), "mine").unwrap();
    fs::write(project.dir().join("file"), "mine").unwrap();
    let refused = project.run(&["init", "full"]).expect_code(1);
    refused.expect_stderr(&["full has prompts/core.md already", "move them away"]);
    project.run(&["init", "file"]).expect_code(1).expect_stderr(&["file"]);
    assert_eq!(fs::read_dir(project.dir().join("full")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(project.dir().join("full/prompts/core.md")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(project.dir().join("file")).unwrap(), "mine");
    assert_eq!(fs::read_dir(project.dir()).unwrap().count(), 3, "litter");
}

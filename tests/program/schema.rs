//! `schema` and `build --emit-views`: the providers' views.

use std::fs;

use serde_json::{Value, json};
use toolwright::providers::PROVIDERS;

use super::support::Project;

fn small() -> Project {
    let project = Project::with(&["note-find", "note-say"]);
    project.edit("note-say/schema.json", "[\"text\", \"voice\"]", "[\"voice\"]");
    project
}

/// The names of the tools that a view declares, whatever its form.
fn names(view: &Value) -> Vec<&str> {
    let tools = view.pointer("/0/functionDeclarations").or_else(|| view.get("tools")).unwrap_or(view);
    let tools = tools.as_array().unwrap().iter();
    tools.map(|tool| tool.get("function").unwrap_or(tool)["name"].as_str().unwrap()).collect()
}

#[test]
fn every_provider_declares_the_same_tools() {
    let project = small();
    for provider in PROVIDERS {
        let run = project.run(&["schema", "--provider", provider.name, "--format", "json"]).expect_code(0);
        assert_eq!(run.stdout.lines().count(), 1);
        assert_eq!(names(&run.json()), ["note_find", "note_say", "reg_describe"], "{}", provider.name);
        let people = project.run(&["schema", "--provider", provider.name]).expect_code(0);
        assert_eq!(people.json(), run.json(), "{}", provider.name);
    }
}

#[test]
fn only_the_selected_tools_are_declared() {
    let project = small();
    let shown = |args: &[&str]| {
        let args = [&["schema", "--provider", "anthropic", "--format", "json"], args].concat();
        let view = project.run(&args).expect_code(0).json();
        names(&view).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["--mode", "text"]), ["note_find", "reg_describe"]);
    assert_eq!(shown(&["--only", "reg_describe,note_say"]), ["note_say", "reg_describe"]);
    assert_eq!(shown(&["--only", "note_say"]), ["note_say"]);
    assert_eq!(shown(&["--only", "note-say,note-find"]), ["note_find", "note_say"]);
    assert_eq!(shown(&["--only", "note_say", "--mode", "text"]), [] as [&str; 0]);
    let wrong = ["schema", "--provider", "mcp", "--only", "note_fnd"];
    let run = project.run(&wrong).expect_code(1);
    assert_eq!(run.expect_stderr(&["no tool `note_fnd`", "`note_find`"]).stdout, "");
}

#[test]
fn an_unknown_provider_is_an_error_that_lists_the_known_ones() {
    let run = small().run(&["schema", "--provider", "openai"]).expect_code(2);
    let all: Vec<String> = PROVIDERS.iter().map(|provider| format!("`{}`", provider.name)).collect();
    assert_eq!(run.expect_stderr(&["there is no provider `openai`", &all.join(", ")]).stdout, "");
}

#[test]
fn the_losses_of_a_view_are_reported() {
    let project = small();
    let losses =
        project.run(&["schema", "--provider", "ollama", "--lossy", "--format", "json"]).expect_code(0);
    let losses = losses.json();
    let closed = losses.as_array().unwrap().iter().find(|loss| loss["keyword"] == "additionalProperties");
    let expected = json!({ "tool": "note_find", "path": "", "keyword": "additionalProperties",
        "done": "dropped", "note": "calls with other members are rejected" });
    assert_eq!(closed, Some(&expected));
    let people = project.run(&["schema", "--provider", "ollama", "--lossy"]).expect_code(0);
    assert_eq!(people.stdout.lines().count(), losses.as_array().unwrap().len());
    assert!(people.stdout.starts_with("note_find / additionalProperties: dropped, "), "{}", people.stdout);
    project
        .run(&["schema", "--provider", "ollama"])
        .expect_code(0)
        .expect_stderr(&["cannot express", "--lossy"]);
    assert_eq!(
        project.run(&["schema", "--provider", "mcp", "--lossy", "--format", "json"]).json(),
        json!([])
    );
    project.run(&["schema", "--provider", "mcp", "--lossy"]).expect_code(0).expect_stderr(&["no losses"]);
}

#[test]
fn a_build_writes_all_views_on_request() {
    let project = small();
    let run = |args: &[&str]| project.run(&[&["build", "--emit-views", "out/views"], args].concat());
    for args in [&[][..], &["--quiet"]] {
        run(args).expect_code(0);
        for provider in PROVIDERS {
            let path = project.dir().join(format!("out/views/{}.json", provider.name));
            let written: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let shown = project.run(&["schema", "--provider", provider.name, "--format", "json"]).json();
            assert_eq!(written, shown, "{}", provider.name);
            fs::remove_file(path).unwrap();
        }
        let losses = fs::read(project.dir().join("out/views/losses.json")).unwrap();
        let losses: Value = serde_json::from_slice(&losses).unwrap();
        assert_eq!(losses["mcp"], json!([]));
        assert!(!losses["ollama"].as_array().unwrap().is_empty());
    }
    let taken = project.dir().join("taken");
    fs::write(&taken, "").unwrap();
    let run = project.run(&["build", "--emit-views", "taken"]).expect_code(1);
    run.expect_stderr(&["taken", "--emit-views DIR"]);
    let run = project.run(&["build", "--emit-views", "taken", "--format", "json"]).expect_code(1);
    assert_eq!(run.json()["diagnostics"][0]["code"], "views-unwritable");
}

#[test]
fn a_name_that_a_provider_refuses_gives_a_warning() {
    let long = "n".repeat(65);
    for name in ["plain", "_under", "query-text", "include[]", "2nd", "naïve", "a.b", &long] {
        let project = Project::with(&["note-find"]);
        project.edit(
            "note-find/schema.json",
            "\"query\": {",
            &format!("\"{name}\": {{ \"type\": \"string\" }}, \"query\": {{"),
        );
        let report = project.check().expect_code(0).json();
        let warned = report["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .any(|found| found["code"] == "parameters-name-refused");
        let is_refused = PROVIDERS.iter().any(|provider| !provider.accepts_parameter(name));
        assert_eq!(warned, is_refused, "{name}: {report}");
    }
    let tool = format!("a{}", "-b".repeat(32));
    let project = Project::with(&[&tool]);
    let found = project.check().expect_code(0).found();
    assert!(found.iter().any(|found| found.ends_with("tool-id-refused")), "{found:?}");
    let id = tool.replace('-', "_");
    let shown = project.run(&["schema", "--provider", "openai-chat", "--lossy"]).expect_code(0).stdout;
    assert!(shown.starts_with(&format!("{id} / name: left_out")), "{shown}");
}

#[test]
fn a_declared_name_that_a_provider_refuses_gives_a_warning() {
    let project = small();
    let tool = json!({ "name": "files.read", "description": "Reads.", "type": "function",
        "parameters": { "type": "object", "properties": {} },
        "implementation": { "type": "mock", "mock_response": 1 } });
    fs::write(project.dir().join("more.json"), json!({ "tools": [tool] }).to_string()).unwrap();
    fs::write(project.dir().join("toolwright.toml"), "[tools]\ndeclared = [\"more.json\"]\n").unwrap();
    project
        .run(&["check"])
        .expect_code(0)
        .expect_stderr(&["`files.read`", "openai-chat, openai-responses, openai-realtime, anthropic"]);
    let view = project.run(&["schema", "--provider", "gemini", "--format", "json"]).expect_code(0).json();
    assert_eq!(names(&view), ["note_find", "note_say", "files.read", "reg_describe"]);
}

#[test]
fn too_many_tools_for_a_request_give_a_warning() {
    let tools: Vec<String> = (0..129).map(|n| format!("tool-{n}")).collect();
    let project = Project::with(&tools.iter().map(String::as_str).collect::<Vec<_>>());
    let many = project.run(&["schema", "--provider", "openai-chat"]).expect_code(0);
    many.expect_stderr(&["at most 128 tools", "--only"]);
    let run = project.run(&["schema", "--provider", "mcp"]).expect_code(0);
    assert!(!run.stderr.contains("at most"), "{}", run.stderr);
}

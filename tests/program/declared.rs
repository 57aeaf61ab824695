//! Declared tools, beside those of the tools directory.

use std::fs;

use serde_json::json;

use super::support::{Project, Run};

const JSON: &str = r#"{ "tools": [
  { "name": "get_weather", "description": "Weather of a city.", "type": "function", "handler": "get_weather",
    "parameters": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
    "implementation": { "type": "mock", "mock_response": { "sky": "clear" } } },
  { "name": "ping", "description": "Asks a server.", "type": "function", "handler": "ping",
    "parameters": { "type": "object" }, "implementation": { "type": "http" } }
] }"#;

const YAML: &str = "tools:
  - name: get_time
    description: The time.
    type: function
    handler: get_time
    parameters: { type: object }
    implementation: { type: mock, mock_response: noon }
  - name: get-tide
    description: A name with a dash.
    type: function
    parameters: { type: object }
    implementation: { type: mock, mock_response: low }
  - name: get_weather
    description: Another one of the same name.
    type: function
    handler: get_weather
    parameters: { type: object }
    implementation: { type: mock, mock_response: storm }
  - name: native
    description: Of a program.
    type: function
    handler: nobody
    parameters: { type: object }
    implementation: { type: builtin }
";

const TOML: &str = "[[tools]]
name = \"get_mood\"
description = \"The mood.\"
type = \"function\"
handler = \"get_mood\"
parameters = { type = \"object\" }
implementation = { type = \"mock\", mock_response = [1, 2] }
";

fn project() -> Project {
    let project = Project::with(&["find-note"]);
    let file = |name: &str, text: &str| fs::write(project.dir().join(name), text).unwrap();
    file("more.json", JSON);
    file("more.yaml", YAML);
    file("more.toml", TOML);
    file("toolwright.toml", "[tools]\ndeclared = [\"more.json\", \"more.yaml\", \"more.toml\"]\n");
    project
}

fn call(project: &Project, tool: &str, args: &str) -> Run {
    project.run(&["call", tool, args, "--format", "json"])
}

#[test]
fn built_and_declared_tools_are_listed_in_order() {
    let run = project().run(&["list", "--format", "json"]).expect_code(0);
    let ids: Vec<_> = run.json().as_array().unwrap().iter().map(|tool| tool["toolId"].clone()).collect();
    assert_eq!(ids, ["find_note", "get_weather", "get_time", "get-tide", "get_mood"]);
    run.expect_stderr(&[
        "HTTP tools not yet supported (coming in v2)",
        "Tool already exists: get_weather",
        "nobody",
    ]);
}

#[test]
fn mocks_of_all_three_formats_are_called_like_any_tool() {
    let project = project();
    assert_eq!(
        call(&project, "get_weather", r#"{"city": "Bern"}"#).expect_code(0).json()["data"],
        json!({ "sky": "clear" })
    );
    assert_eq!(call(&project, "get_time", "{}").expect_code(0).json()["data"], "noon");
    assert_eq!(call(&project, "get-tide", "{}").expect_code(0).json()["data"], "low");
    assert_eq!(call(&project, "get_mood", "{}").expect_code(0).json()["data"], json!([1, 2]));
    assert_eq!(call(&project, "get_weather", "{}").expect_code(1).json()["error"]["type"], "VALIDATION");
    assert_eq!(call(&project, "ping", "{}").expect_code(1).json()["error"]["type"], "NOT_FOUND");
    project.run(&["describe", "get_mood"]).expect_code(0);
}

#[test]
fn an_unreadable_file_is_logged_and_the_others_are_loaded() {
    let project = Project::with(&["find-note"]);
    fs::write(project.dir().join("toolwright.toml"), "[tools]\ndeclared = [\"absent.json\", \"bad.yaml\"]\n")
        .unwrap();
    fs::write(project.dir().join("bad.yaml"), "tools: [").unwrap();
    let run = call(&project, "find_note", r#"{"query": "x"}"#).expect_code(0);
    run.expect_stderr(&["absent.json", "bad.yaml"]);
}

#[test]
fn the_version_follows_the_declared_tools() {
    let project = project();
    let version =
        |project: &Project| call(project, "get_time", "{}").json()["meta"]["registryVersion"].clone();
    let before = version(&project);
    assert_eq!(version(&project), before);
    fs::write(project.dir().join("more.yaml"), YAML.replace("noon", "night")).unwrap();
    assert_ne!(version(&project), before);
}

#[test]
fn check_and_build_print_the_tools_of_a_session() {
    let project = project();
    let expected_text = "a session gets 6 tools: 1 built, 5 declared, 2 refused (1 only in a program that registers the handler)";
    let refused =
        ["refused", "HTTP tools not yet supported (coming in v2)", "Tool already exists: get_weather"];
    project.run(&["check"]).expect_code(1).expect_stderr(&[expected_text]).expect_stderr(&refused);
    project.run(&["build"]).expect_code(0).expect_stderr(&[expected_text]).expect_stderr(&refused);
    let found = project.run(&["check", "--format", "json"]).expect_code(1).json();
    assert_eq!((&found["ok"], found.get("version")), (&json!(false), None));
    let codes: Vec<_> = found["diagnostics"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["tool-refused", "tool-refused"]);
}

#[test]
fn declared_tools_alone_are_a_toolset() {
    let project = project();
    fs::remove_dir_all(project.tools()).unwrap();
    let run = call(&project, "get_weather", r#"{"city": "Oslo"}"#).expect_code(0);
    assert_eq!(run.json()["data"], json!({ "sky": "clear" }));
    project.run(&["check"]).expect_code(1).expect_stderr(&["a session gets 5 tools: 0 built, 5 declared"]);
    // A directory that is named must exist.
    project.run(&["list", "--tools", "tools"]).expect_code(1).expect_stderr(&["there is no tools directory"]);
}

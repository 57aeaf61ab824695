//! What a running server reads again: tools, configuration and prompts.

use std::fs;

use serde_json::json;

use super::serve::Serving;
use super::support::Project;

const DECLARED: &str = r#"{"tools": [{"name": "say_hello", "description": "Says hello.", "type": "function",
    "parameters": {"type": "object"}, "implementation": {"type": "mock", "mock_response": "hello"}}]}"#;

fn write(project: &Project, name: &str, text: &str) {
    let path = project.dir().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn the_configuration_and_the_prompts_are_read_again() {
    let project = Project::with(&["find-note"]);
    write(&project, "toolwright.toml", "[limits.text]\ntop_k = 7\n");
    write(&project, "prompts/core.md", "# Core\n\nBe brief.\n");
    write(&project, "more.json", DECLARED);
    let serving = Serving::start(&project, &["--watch"]);
    let prompt = || serving.ask("GET /v1/prompt?mode=text", "", "").1["prompt"].as_str().unwrap().to_owned();
    assert!(prompt().starts_with("Be brief.") && !prompt().contains("say_hello"), "{}", prompt());
    write(&project, "prompts/core.md", "# Core\n\nBe kind.\n");
    serving.expect("reloaded");
    assert!(prompt().starts_with("Be kind."), "{}", prompt());
    write(&project, "toolwright.toml", "[limits.text]\ntop_k = 8\n[tools]\ndeclared = [\"more.json\"]\n");
    serving.expect("[limits] in the configuration file has changed: start the server again");
    serving.expect("reloaded");
    let (status, envelope) = serving.ask("POST /v1/tools/say_hello/call", "", r#"{"args": {}}"#);
    assert_eq!((status, &envelope["data"]), (200, &json!("hello")), "{envelope}");
    write(&project, "toolwright.toml", "[tools\n");
    serving.expect("is not valid");
    serving.expect("the previous toolset stays in use");
    // Without `--watch`, SIGHUP does the same.
    write(&project, "toolwright.toml", "");
    serving.signal("-HUP");
    serving.expect("reloaded");
    assert_eq!(serving.ask("GET /v1/tools/say_hello", "", "").0, 404);
}

#[test]
fn a_server_that_watches_waits_for_tools_that_do_not_build() {
    let project = Project::with(&["find-note"]);
    project.write("find-note/handler.js", "export async function execute( {");
    project.run(&["serve", "--listen", "127.0.0.1:0"]).expect_code(1).expect_stderr(&["do not build"]);
    let serving = Serving::start(&project, &["--watch"]);
    assert_eq!(serving.ask("GET /v1/tools/find_note", "", "").0, 404);
    project.write(
        "find-note/handler.js",
        "export async function execute() { return { ok: true, data: 'mended' }; }\n",
    );
    serving.expect("reloaded");
    let call = serving.ask("POST /v1/tools/find_note/call", "", r#"{"args": {"query": "x"}}"#).1;
    assert_eq!(call["data"], "mended");
}

#[test]
fn an_artifact_without_its_handlers_is_refused() {
    let project = Project::with(&["find-note", "note-read"]);
    project.run(&["build", "--out", "new/directory/tool_registry.json"]).expect_code(0);
    let moved = project.dir().join("moved.json");
    fs::rename(project.dir().join("new/directory/tool_registry.json"), moved).unwrap();
    let refused =
        project.run(&["serve", "--artifact", "moved.json", "--listen", "127.0.0.1:0"]).expect_code(1);
    refused.expect_stderr(&[
        "find-note/handler.js is not there",
        "1 other handler",
        "ship the tools directory",
    ]);
}

//! Help for authors: members of `context`, exports, acknowledged warnings, the project's formats, summaries.

use std::fs;

use serde_json::{Value, json};

use super::support::{HANDLER, Project};

fn diagnostics(project: &Project) -> Vec<Value> {
    project.check().json()["diagnostics"].as_array().unwrap().clone()
}

/// `severity code message` of the only diagnostic, and its help.
fn only(project: &Project) -> (String, String) {
    let found = diagnostics(project);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = |name: &str| found[0][name].as_str().unwrap_or_default().to_owned();
    (format!("{} {} {}", text("severity"), text("code"), text("message")), text("help"))
}

fn handler(project: &Project, body: &str) {
    project
        .write("one/handler.js", format!("export async function execute({{ args, context }}) {{ {body} }}"));
}

#[test]
fn an_unknown_member_of_the_context_is_found() {
    let project = Project::with(&["one"]);
    let error = "error handler-unknown-context `context.";
    let warning = "warning handler-unknown-context `context.";
    for (body, severity, path, help) in [
        ("return context.htp.fetch('x')", error, "htp", "did you mean `context.http`?"),
        ("return context.kb.serch({})", error, "kb.serch", "did you mean `context.kb.search`?"),
        ("return context.fetch('x')", error, "fetch", "did you mean `context.http.fetch`?"),
        ("context.proggress(1)", error, "proggress", "did you mean `context.progress`?"),
        ("return context.database.query()", error, "database", "`context` has `messaging`, `voice`"),
        ("if (context.memory) context.memory.save()", warning, "memory", "`context` has"),
        ("return context.memory?.get()", warning, "memory", "`context` has"),
        ("const { htp } = context", warning, "htp", "did you mean `context.http`?"),
        ("const { fetsh } = context.http", warning, "http.fetsh", "did you mean `context.http.fetch`?"),
        (
            "return [1].map(() => context.session.staate.x)",
            error,
            "session.staate",
            "did you mean `context.session.state`?",
        ),
    ] {
        handler(&project, body);
        let (found, advice) = only(&project);
        assert_eq!(found, format!("{severity}{path}` does not exist"), "{body}");
        assert!(advice.starts_with(help), "{body}: {advice}");
    }
}

#[test]
fn a_capability_that_the_side_effects_do_not_allow_is_found_and_may_be_acknowledged() {
    let project = Project::with(&["one"]);
    let effects = |effects: &str| {
        let schema = fs::read_to_string(project.path("one/schema.json")).unwrap();
        let mut schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        let category = if effects == "none" { "utility" } else { "retrieval" };
        (schema["sideEffects"], schema["category"]) = (effects.into(), category.into());
        project.write("one/schema.json", schema.to_string());
    };
    for (declared, body, path, needs) in [
        ("none", "return context.http.fetch('https://a.example')", "http.fetch", "read_only"),
        ("none", "const { search } = context.kb; return search({})", "kb.search", "read_only"),
        (
            "read_only",
            "await context.messaging.send({}); await context.messaging.send({})",
            "messaging.send",
            "writes",
        ),
    ] {
        effects(declared);
        handler(&project, body);
        let (found, help) = only(&project);
        let text =
            format!("`context.{path}` needs `sideEffects: \"{needs}\"`, and this tool has \"{declared}\"");
        assert!(found.starts_with(&format!("warning handler-capability-refused {text}")), "{body}: {found}");
        assert!(help.starts_with(&format!("declare `\"sideEffects\": \"{needs}\"`")), "{help}");
    }
    project.edit("one/schema.json", "{", "{\"allow\":[\"handler-capability-refused\"],");
    assert_eq!(diagnostics(&project), [0; 0]);
    for body in ["return context.http.fetch('https://a.example')", "return context.callTool('two', {})"] {
        effects("read_only");
        project.edit("one/schema.json", "\"allow\":[\"handler-capability-refused\"],", "");
        handler(&project, body);
        assert_eq!(diagnostics(&project), [0; 0], "{body}");
        project.edit("one/schema.json", "{", "{\"allow\":[\"handler-capability-refused\"],");
    }
}

#[test]
fn members_that_exist_or_cannot_be_known_are_not_reported() {
    let project = Project::with(&["one"]);
    for source in [
        "export async function execute({ args, context }) { const { kb, http: { fetch } } = context; \
         await context.callTool('x', {}); context.session.state.anything.at.all; context.signal.aborted; \
         context.clientId.length; context['htp']; return fetch(kb) }",
        "export async function execute({ context: { kb, mode } }) { return kb.search({ mode }) }",
        "export async function execute(call) { return draw(call.args) } \
         function draw(canvas) { const context = canvas.getContext('2d'); context.fillRect(0); }",
    ] {
        project.write("one/handler.js", source);
        assert_eq!(diagnostics(&project), [0; 0], "{source}");
    }
    // A module may use the name for something else; only typing errors are reported.
    handler(&project, "return draw(context)");
    project.edit("one/handler.js", "export", "import { draw } from './draw.js'; export");
    project
        .write("one/draw.js", "export function draw(context) { context.fillRect(0); context.callTol('x') }");
    assert_eq!(only(&project).0, "warning handler-unknown-context `context.callTol` does not exist");
}

#[test]
fn a_default_export_gets_the_right_advice() {
    let project = Project::with(&["one"]);
    for (source, advice) in [
        ("export default async function execute() {}", "remove `default`"),
        ("export default function execute() {}", "remove `default`"),
        ("async function execute() {}\nexport default execute;", "write `export { execute }`"),
        ("const execute = async () => {};\nexport default execute;", "write `export { execute }`"),
        ("export default async () => {}", "write `export async function execute({ args, context }) { … }`"),
    ] {
        project.write("one/handler.js", source);
        let (found, help) = only(&project);
        assert!(found.starts_with("error handler-no-execute"), "{found}");
        assert!(help.ends_with(advice), "{source}: {help}");
    }
}

#[test]
fn a_warning_can_be_acknowledged() {
    let project = Project::with(&["one"]);
    project.edit("one/schema.json", "800,", "1500,");
    assert!(only(&project).0.starts_with("warning voice-latency"));
    project.edit("one/schema.json", "1500,", "1500, \"allow\": [\"voice-latency\"],");
    assert_eq!(diagnostics(&project), [0; 0]);
    project.build();
    assert_eq!(project.artifact_json()["tools"][0]["allow"], json!(["voice-latency"]));
    // The second build reads the warnings from the cache.
    project.build().expect_stderr(&["1 tool"]);

    project.edit("one/schema.json", "1500,", "800,");
    let (found, help) = only(&project);
    assert_eq!(
        found,
        "warning allow-unused `allow` names `voice-latency`, and there is no such warning in this tool"
    );
    assert_eq!(help, "remove it");
    project.edit("one/schema.json", "voice-latency", "voice-latncy");
    let (found, help) = only(&project);
    assert_eq!(found, "error allow-unknown `allow` names `voice-latncy`, which is not the code of a warning");
    assert_eq!(help, "did you mean `voice-latency`?");
    // An error cannot be acknowledged.
    project.edit("one/schema.json", "voice-latncy", "handler-syntax");
    assert!(only(&project).0.starts_with("error allow-unknown"));
}

#[test]
fn one_wrong_example_gives_one_finding() {
    let project = Project::with(&["one"]);
    project.edit(
        "one/doc.md",
        "{ \"query\": \"opening hours\" }",
        "{ \"qury\": 1, \"top_k\": \"x\", \"b\": 2 }",
    );
    let (found, _) = only(&project);
    assert!(
        found.starts_with("error example-refused an example of `doc.md` does not match `parameters`: "),
        "{found}"
    );
    assert!(found.contains("; ") && found.contains("qury"), "{found}");
    project.edit("one/doc.md", "{ \"qury\"", "{ \"ok\": true, \"dta\": 1, \"intents\": [{}] }\n```\n```json\n{ \"query\": \"x\" }\n```\n```text\n{ \"qury\"");
    assert!(only(&project).0.starts_with("error example-envelope"));
}

#[test]
fn summaries_count_errors_warnings_and_tools() {
    let project = Project::with(&["one", "two", "three"]);
    project.edit("one/schema.json", "800,", "1500,");
    project.run(&["check"]).expect_code(0).expect_stderr(&["ok: 3 tools", "(1 warning in 1 of 3 tools)"]);
    project.edit("two/schema.json", "\"1.0.0\"", "1");
    project.edit("two/schema.json", "\"retrieval\"", "\"x\"");
    project.run(&["check"]).expect_code(1).expect_stderr(&["failed: 2 errors, 1 warning in 2 of 3 tools"]);
    project
        .run(&["build"])
        .expect_code(1)
        .expect_stderr(&["failed: 2 errors, 1 warning in 2 of 3 tools; nothing"]);
}

const PHONE: &str =
    "\"query\": { \"type\": \"string\", \"description\": \"A number\", \"format\": \"phone\" }";

/// A project with the tool `one` whose `query` has the format `phone`, and this configuration.
fn phone_project(config: &str) -> Project {
    let project = Project::with(&["one"]);
    let schema = fs::read_to_string(project.path("one/schema.json")).unwrap();
    let line =
        schema.lines().find(|line| line.contains("\"query\": {")).unwrap().trim().trim_end_matches(',');
    project.edit("one/schema.json", line, PHONE);
    project.edit("one/doc.md", "\"opening hours\"", "\"+4930123456\"");
    fs::write(project.dir().join("toolwright.toml"), config).unwrap();
    project
}

#[test]
fn a_format_of_the_project_is_used_by_lint_validation_and_views() {
    let project = phone_project("[formats]\nphone = '^\\+[1-9][0-9]{6,14}$'\n");
    project.write("one/handler.js", HANDLER);
    project.run(&["check"]).expect_code(0);
    let good = project
        .run(&["call", "one", r#"{"query": "+4930123456"}"#, "--format", "json"])
        .expect_code(0)
        .json();
    assert_eq!(good["data"]["query"], "+4930123456");
    let bad = project.run(&["call", "one", r#"{"query": "030"}"#, "--format", "json"]).expect_code(1).json();
    assert_eq!(bad["error"]["type"], "VALIDATION");
    assert_eq!(bad["error"]["details"][0]["instancePath"], "/query", "{bad}");
    let view = project.run(&["schema", "--provider", "openai-chat"]).expect_code(0).stdout;
    assert!(view.contains(r#""pattern": "^\\+[1-9][0-9]{6,14}$""#), "{view}");
    // An example is validated, too.
    project.edit("one/doc.md", "+4930123456", "no number");
    assert!(only(&project).0.starts_with("error example-refused"));
}

#[test]
fn an_unknown_format_says_how_to_define_it() {
    let project = phone_project("[formats]\nphon = '^[0-9]+$'\n");
    assert_eq!(only(&project).1, "did you mean `phon`?");
    fs::write(project.dir().join("toolwright.toml"), "").unwrap();
    assert_eq!(only(&project).1, "define it in toolwright.toml: `[formats]` and `phone = '<pattern>'`");
    fs::write(project.dir().join("toolwright.toml"), "[formats]\nphone = '('\n").unwrap();
    project
        .run(&["check"])
        .expect_code(1)
        .expect_stderr(&["`[formats]` cannot be used: the format `phone` has a pattern"]);
    fs::write(project.dir().join("toolwright.toml"), "[formats]\nemail = 'x'\n").unwrap();
    project
        .run(&["list"])
        .expect_code(1)
        .expect_stderr(&["the format `email` exists already", "choose another name"]);
}

#[test]
fn a_reference_to_another_file_says_where_shared_definitions_belong() {
    let project = Project::with(&["one"]);
    let schema = fs::read_to_string(project.path("one/schema.json")).unwrap();
    let line =
        schema.lines().find(|line| line.contains("\"query\": {")).unwrap().trim().trim_end_matches(',');
    project.edit("one/schema.json", line, "\"query\": { \"$ref\": \"common/person.json#/$defs/name\" }");
    let found = diagnostics(&project);
    assert_eq!(found[0]["code"], "schema-unresolved-ref", "{found:?}");
    assert!(found[0]["help"].as_str().unwrap().contains("write `../_shared/person.json`"), "{found:?}");
}

#[test]
fn a_build_from_the_cache_notices_a_changed_format() {
    let project = phone_project("[formats]\nphone = '^\\+[0-9]+$'\n");
    project.settle();
    fs::write(project.dir().join("toolwright.toml"), "[formats]\nphone = '^\\+[0-9 ]+$'\n").unwrap();
    project.build();
    let schema = &project.artifact_json()["tools"][0]["jsonSchema"];
    assert_eq!(schema["properties"]["query"]["pattern"], "^\\+[0-9 ]+$");
}

#[test]
fn a_section_of_the_configuration_for_no_tool_is_found() {
    let project = Project::with(&["one"]);
    fs::write(project.dir().join("toolwright.toml"), "[tool.on.http]\nallow = [\"api.example.com\"]\n")
        .unwrap();
    let report = project.check().expect_code(1).json();
    let found = &report["diagnostics"][0];
    let message = "`[tool.on]` in the configuration: there is no tool `on`";
    assert_eq!((&found["code"], &found["message"]), (&json!("config-unknown-tool"), &json!(message)));
    assert_eq!((&report["ok"], &found["help"]), (&json!(false), &json!("did you mean `[tool.one]`?")));
    project.run(&["check"]).expect_code(1).expect_stderr(&[message, "did you mean `[tool.one]`?"]);
    let doctor = project.run(&["doctor", "--format", "json"]).json();
    let tools = doctor["checks"].as_array().unwrap().iter().find(|check| check["check"] == "tools").unwrap();
    assert_eq!((&tools["status"], &tools["message"]), (&json!("broken"), &json!(message)));
    fs::write(project.dir().join("toolwright.toml"), "[tool.one.http]\nallow = [\"api.example.com\"]\n")
        .unwrap();
    project.check().expect_code(0);
}

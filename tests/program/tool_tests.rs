//! `toolwright test`: the tools' own tests.

use serde_json::json;

use super::support::Project;

#[test]
fn the_reference_tools_pass_their_tests_and_each_has_at_least_two() {
    let report = Project::reference().run(&["test", "--format", "json"]).expect_code(0).json();
    assert_eq!(report["ok"], true);
    let tests = report["tests"].as_array().unwrap();
    let tools = Project::reference();
    for tool in std::fs::read_dir(tools.tools()).unwrap().flatten() {
        let id = tool.file_name().to_str().unwrap().replace('-', "_");
        let count = tests.iter().filter(|test| test["tool"] == *id).count();
        assert!(count >= 2, "{id} has {count} tests");
    }
    assert!(tests.iter().all(|test| test["ok"] == true && test["differences"] == json!([])));
}

#[test]
fn the_tools_of_a_new_project_pass_their_own_tests() {
    let project = Project::empty();
    project.run(&["init", "my-agent"]).expect_code(0);
    let mut command = super::support::command_in(&project.dir().join("my-agent"), &["test"]);
    command.env_remove("TOOLWRIGHT_TOOLS");
    super::support::run(command).expect_code(0).expect_stderr(&["0 failed"]);
}

const TEST: &str = r#"{ "name": "It finds", "args": { "query": "light" },
    "expect": { "ok": true, "data": { "query": "dark" } }, "calls": [{ "capability": "kb.search" }] }"#;

#[test]
fn a_failing_test_prints_the_differences_and_exits_with_1() {
    let project = Project::with(&["find-note", "sound"]);
    project.write("find-note/tests/works.json", TEST);
    project.write(
        "sound/tests/works.json",
        TEST.replace("dark", "light").replace("{ \"capability\": \"kb.search\" }", ""),
    );
    let run = project.run(&["test"]).expect_code(1);
    run.expect_stderr(&[
        "FAIL",
        "find_note",
        "It finds",
        "find-note/tests/works.json",
        "envelope.data.query is \"light\", not \"dark\"",
        "the capability calls are [], not [\"kb.search\"]",
        "1 passed, 1 failed",
    ]);
    project.run(&["test", "--only", "sound"]).expect_code(0).expect_stderr(&["1 passed, 0 failed"]);
    let report = project.run(&["test", "--format", "json"]).expect_code(1).json();
    assert_eq!((&report["ok"], &report["tests"][1]["ok"]), (&json!(false), &json!(true)));
    assert_eq!(report["tests"][0]["differences"].as_array().unwrap().len(), 2);
}

#[test]
fn another_tool_that_does_not_build_keeps_no_call_and_no_test_from_running() {
    let project = Project::with(&["find-note", "sound"]);
    project.write(
        "sound/tests/works.json",
        TEST.replace("dark", "light").replace(r#"{ "capability": "kb.search" }"#, ""),
    );
    project.write("find-note/handler.js", "export async function execute( {");
    std::fs::write(project.dir().join("toolwright.toml"), "[tool.find_note.http]\nallow = [\"a.example\"]\n")
        .unwrap();
    let left_out = "left out, because they do not build: find-note; see `toolwright check`";
    project.run(&["test", "--only", "sound"]).expect_code(0).expect_stderr(&[left_out, "1 passed, 0 failed"]);
    project.run(&["call", "sound", r#"{"query": "x"}"#]).expect_code(0).expect_stderr(&[left_out]);
    project.run(&["test"]).expect_code(1).expect_stderr(&["the tools do not build"]);
    for tool in ["find-note", "find_note"] {
        project
            .run(&["call", tool, r#"{"query": "x"}"#])
            .expect_code(1)
            .expect_stderr(&["the tools do not build"]);
    }
    project.run(&["call", "nothing", "{}"]).expect_code(1).expect_stderr(&[left_out]);
}

#[test]
fn a_test_is_not_held_against_the_latency_budget() {
    let project = Project::with(&["sound"]);
    project.edit(
        "sound/schema.json",
        "\"latencyBudgetMs\": 800",
        "\"timeoutMs\": 5000, \"latencyBudgetMs\": 1",
    );
    let slow = "export async function execute({ args }) {\n  const start = Date.now();\n  while (Date.now() < start + 20);\n  return { ok: true, data: { query: args.query } };\n}\n";
    project.write("sound/handler.js", slow);
    project.write(
        "sound/tests/works.json",
        TEST.replace("dark", "light").replace(r#"{ "capability": "kb.search" }"#, ""),
    );
    let run = project.run(&["test"]).expect_code(0);
    assert!(!run.stderr.contains("longer than"), "{}", run.stderr);
    let called = project.run(&["call", "sound", r#"{"query": "x"}"#]).expect_code(0);
    called.expect_stderr(&["longer than its `latencyBudgetMs` of 1"]);
}

#[test]
fn an_invalid_test_file_fails_and_the_others_run() {
    let project = Project::with(&["find-note"]);
    project.write("find-note/tests/a.json", "{");
    project.write("find-note/tests/b.json", r#"{ "name": "b", "arguments": {} }"#);
    project.write(
        "find-note/tests/c.json",
        TEST.replace("\"calls\"", "\"capabilities\": { \"kb.serch\": { \"returns\": 1 } }, \"calls\""),
    );
    project.write(
        "find-note/tests/d.json",
        r#"{ "name": "d", "args": { "query": "x" }, "expect": { "ok": true } }"#,
    );
    project.write("find-note/tests/notes.txt", "not a test");
    let run = project.run(&["test"]).expect_code(1);
    run.expect_stderr(&[
        "a.json is not a valid test",
        "unknown field `arguments`",
        "stubs `kb.serch`, but there is no such capability",
        "1 passed, 3 failed",
    ]);
}

#[test]
fn a_toolset_without_tests_is_reported() {
    Project::with(&["find-note"])
        .run(&["test"])
        .expect_code(1)
        .expect_stderr(&["no tests found", "toolwright new"]);
    let run = Project::reference().run(&["test", "--only", "kb_serch"]).expect_code(1);
    run.expect_stderr(&["there is no tool `kb_serch`", "did you mean `kb_search`?"]);
}

#[test]
fn data_that_does_not_match_its_schema_and_thrown_errors_are_shown_with_their_places() {
    let project = Project::with(&["find-note"]);
    let output =
        r#""output": { "type": "object", "properties": { "order_id": { "type": "string" } } }, "parameters""#;
    project.edit("find-note/schema.json", "\"parameters\"", output);
    project.write(
        "find-note/handler.js",
        "export async function execute({ args, context }) {
  console.warn('ordering');
  if (args.query === 'order') return { ok: true, data: { order_id: 12 } };
  return inner(args);
}

function inner(args) {
  return args.missing.deep;
}
",
    );
    let test = |query: &str| {
        format!(r#"{{ "name": "{query}", "args": {{ "query": "{query}" }}, "expect": {{ "ok": true }} }}"#)
    };
    project.write("find-note/tests/order.json", test("order"));
    project.write("find-note/tests/throws.json", test("throws"));
    let place = "/order_id must be string, got 12";
    let stack = ["the handler threw TypeError", "at inner (handler.js:8:", "at execute (handler.js:4:"];
    let run = project.run(&["test"]).expect_code(1).expect_stderr(&["warn: ordering", place]);
    run.expect_stderr(&stack);
    for (query, shown) in [("order", [place; 3]), ("throws", stack)] {
        let args = json!({ "query": query }).to_string();
        let run = project.run(&["call", "find_note", &args]).expect_code(1).expect_stderr(&shown);
        let error = run.json()["error"].to_string();
        assert!(
            error.contains("INTERNAL") && !error.contains("order_id") && !error.contains("handler.js"),
            "{error}"
        );
    }
}

#[test]
fn a_stub_allows_a_read_only_tool_to_read_and_not_to_write() {
    let project = Project::with(&["one"]);
    let test = r#"{ "name": "It fetches", "args": { "query": "x" }, "expect": { "ok": true },
        "capabilities": { "http.fetch": { "returns": { "status": 200 } } } }"#;
    project.write("one/tests/fetches.json", test);
    for (init, code) in [("", 0), (", { method: 'HEAD' }", 0), (", { method: 'POST', body: {} }", 1)] {
        project.write(
            "one/handler.js",
            format!("export async function execute({{ context }}) {{ await context.http.fetch('https://x.example/'{init}); return {{ ok: true, data: 1 }} }}"),
        );
        let run = project.run(&["test", "--only", "one"]).expect_code(code);
        if code == 1 {
            run.expect_stderr(&["a read-only tool may use GET and HEAD, not POST"]);
        }
    }
}

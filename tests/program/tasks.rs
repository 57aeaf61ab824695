//! Tools that run in the background: `toolwright call`, `toolwright tasks` and a server that is killed.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::serve::Serving;
use super::support::{Project, TIMEOUT};

/// A project with two background tools: `write_report`, and `count_words`, which may be run again. If their argument is
/// `long`, both wait for a server that never answers.
fn project() -> (Project, TcpListener) {
    let project = Project::with(&["write-report", "count-words"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let allow = |tool| format!("[tool.{tool}.http]\nallow = [\"{address}\"]\n");
    let config = format!("{}{}", allow("write_report"), allow("count_words"));
    fs::write(project.dir().join("toolwright.toml"), config).unwrap();
    for (tool, idempotent) in [("write-report", false), ("count-words", true)] {
        let path = format!("{tool}/schema.json");
        let mut schema: Value =
            serde_json::from_str(&fs::read_to_string(project.path(&path)).unwrap()).unwrap();
        schema["category"] = json!("action");
        schema["sideEffects"] = json!("writes");
        schema["idempotent"] = json!(idempotent);
        schema["execution"] = json!("background");
        schema["timeoutMs"] = json!(60_000);
        project.write(&path, schema.to_string());
        let handler = format!(
            "export async function execute({{ args, context }}) {{
  context.progress(0.5, 'halfway');
  if (args.query === 'long') await context.http.fetch('http://{address}/');
  return {{ ok: true, data: {{ query: args.query }} }};
}}\n"
        );
        project.write(&format!("{tool}/handler.js"), handler);
    }
    (project, silent)
}

fn begin(serving: &Serving, tool: &str, query: &str) -> String {
    let body = json!({ "args": { "query": query } }).to_string();
    let (status, envelope) = serving.ask(&format!("POST /v1/tools/{tool}/call"), "", &body);
    assert_eq!(status, 200, "{envelope}");
    envelope["data"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
}

/// Waits until the task has this status.
fn wait_for(serving: &Serving, id: &str, status: &str) -> Value {
    let started = std::time::Instant::now();
    loop {
        let (_, task) = serving.ask(&format!("GET /v1/tasks/{id}"), "", "");
        if task["status"] == status {
            return task;
        }
        assert!(started.elapsed() < TIMEOUT, "not {status}: {task}");
        std::thread::yield_now();
    }
}

#[test]
fn a_call_in_its_own_process_waits_for_the_result() {
    let (project, _silent) = project();
    let called = project.run(&["call", "write_report", r#"{"query": "short"}"#]).expect_code(0);
    assert_eq!(called.json()["data"], json!({ "query": "short" }));
    called.expect_stderr(&["halfway"]);
    let listed = project.run(&["tasks", "list", "--format", "json"]).expect_code(0).json();
    let id = listed[0]["taskId"].as_str().unwrap().to_owned();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["status"]), (1, &json!("completed")));
    let shown = project.run(&["tasks", "show", &id]).expect_code(0).json();
    assert_eq!(shown["envelope"]["data"], json!({ "query": "short" }));
    project.run(&["tasks", "list"]).expect_code(0);
    let again = project.run(&["tasks", "cancel", &id]).expect_code(0);
    again.expect_stderr(&["has ended already: completed"]);
    project.run(&["tasks", "show", "task_x"]).expect_code(1).expect_stderr(&["there is no task `task_x`"]);
}

#[test]
fn tasks_are_shown_and_cancelled_through_the_server() {
    let (project, _silent) = project();
    let serving = Serving::start(&project, &[]);
    let called = project.run(&["call", "write_report", r#"{"query": "long"}"#]).expect_code(0).json();
    let id = called["data"]["task"]["taskId"].as_str().unwrap().to_owned();
    wait_for(&serving, &id, "running");
    project.run(&["tasks", "cancel", &id]).expect_code(0).expect_stderr(&["asked for the end"]);
    wait_for(&serving, &id, "cancelled");
    let shown = project.run(&["tasks", "show", &id]).expect_code(0).json();
    assert_eq!(shown["envelope"]["error"]["type"], "TRANSIENT");
    project.run(&["tasks", "cancel", "task_x"]).expect_code(1).expect_stderr(&["there is no task `task_x`"]);
}

#[test]
fn the_next_server_takes_over_the_tasks_of_one_that_was_killed() {
    let (project, _silent) = project();
    let mut serving = Serving::start(&project, &[]);
    let once = begin(&serving, "write_report", "long");
    let again = begin(&serving, "count_words", "long");
    for id in [&once, &again] {
        wait_for(&serving, id, "running");
        let started = std::time::Instant::now();
        while serving.ask(&format!("GET /v1/tasks/{id}"), "", "").1["progress"] != 0.5 {
            assert!(started.elapsed() < TIMEOUT, "no progress of {id}");
        }
    }
    serving.signal("-KILL");
    serving.ended();
    let serving = Serving::start(&project, &[]);
    let task = wait_for(&serving, &once, "in_doubt");
    let error = &task["envelope"]["error"];
    assert_eq!((&error["type"], &error["partialSideEffects"]), (&json!("INTERNAL"), &json!(true)));
    wait_for(&serving, &again, "running");
    project.run(&["tasks", "cancel", &again]).expect_code(0);
    wait_for(&serving, &again, "cancelled");
}

//! A new version of the tools beside the sessions of the old one.

use serde_json::{Value, json};

use super::serve::Serving;
use super::support::Project;

/// Makes the tool return this text, once a person has approved it if it asks.
fn write_version(project: &Project, text: &str) {
    let handler = format!("export async function execute() {{ return {{ ok: true, data: '{text}' }}; }}\n");
    project.write("find-note/handler.js", handler);
}

fn begin(serving: &Serving) -> String {
    let (status, session) = serving.ask("POST /v1/sessions", "", r#"{"mode": "text"}"#);
    assert_eq!(status, 201, "{session}");
    session["sessionId"].as_str().unwrap().to_owned()
}

fn call(serving: &Serving, session: &str, tool: &str, id: &str) -> Value {
    let body = json!({ "args": { "query": "x" }, "sessionId": session, "executionId": id }).to_string();
    serving.ask(&format!("POST /v1/tools/{tool}/call"), "", &body).1
}

fn stop(mut serving: Serving) {
    serving.terminate();
    assert!(serving.ended().success());
}

#[test]
fn a_session_and_its_approvals_outlast_a_restart_with_changed_tools() {
    let project = Project::with(&["find-note", "send-note"]);
    write_version(&project, "old");
    project.edit(
        "send-note/schema.json",
        "\"requiresConfirmation\": false",
        "\"requiresConfirmation\": true",
    );
    project.write(
        "send-note/handler.js",
        "export async function execute() { return { ok: true, data: 'old' }; }\n",
    );
    let serving = Serving::start(&project, &[]);
    let session = begin(&serving);
    assert_eq!(call(&serving, &session, "find_note", "c1")["data"], "old");
    let asked = call(&serving, &session, "send_note", "c2");
    let token = asked["error"]["details"]["confirmation_request"]["confirmation_token"].as_str().unwrap();
    stop(serving);

    write_version(&project, "new");
    project.remove("send-note");
    let serving = Serving::start(&project, &[]);
    assert_eq!(call(&serving, &session, "find_note", "c3")["data"], "old");
    let fresh = begin(&serving);
    assert_eq!(call(&serving, &fresh, "find_note", "c3")["data"], "new");
    assert_eq!(call(&serving, &fresh, "send_note", "c4")["error"]["type"], "NOT_FOUND");
    let (status, envelope) = serving.ask(&format!("POST /v1/confirmations/{token}/approve"), "", "{}");
    assert_eq!((status, &envelope["data"]), (200, &json!("old")), "{envelope}");
    assert_eq!(call(&serving, &session, "send_note", "c2")["meta"]["replayed"], true);

    let listed = project.run(&["toolsets", "list", "--format", "json"]).expect_code(0).json();
    let counts =
        |field: &str| listed.as_array().unwrap().iter().map(|row| row[field].clone()).collect::<Vec<_>>();
    assert_eq!((counts("sessions"), counts("tools")), (vec![json!(1), json!(1)], vec![json!(1), json!(2)]));
    let table = project.run(&["toolsets", "list"]).expect_code(0).stdout;
    assert!(table.contains("TOOLSET") && table.lines().count() == 3, "{table}");
    let (status, _) = serving.ask(&format!("DELETE /v1/sessions/{session}"), "", "");
    assert_eq!(status, 204);
    project.run(&["toolsets", "prune"]).expect_code(1).expect_stderr(&["it deletes unused toolsets itself"]);
    stop(serving);
    let none = project.run(&["toolsets", "prune", "--format", "json"]).expect_code(0).json();
    assert_eq!(none, json!({ "deleted": [], "remaining": 2 }));
    let pruned =
        project.run(&["toolsets", "prune", "--unused-for", "0", "--format", "json"]).expect_code(0).json();
    assert_eq!((pruned["deleted"].as_array().unwrap().len(), &pruned["remaining"]), (1, &json!(1)));
}

#[test]
fn a_hangup_installs_a_new_toolset_beside_the_old_one() {
    let project = Project::with(&["find-note"]);
    write_version(&project, "old");
    project.build().expect_code(0);
    let artifact = project.artifact();
    let serving = Serving::start(&project, &["--artifact", artifact.to_str().unwrap()]);
    let session = begin(&serving);
    write_version(&project, "new");
    project.build().expect_code(0);
    serving.signal("-HUP");
    serving.expect("reloaded");
    assert_eq!(call(&serving, &begin(&serving), "find_note", "c1")["data"], "new");
    assert_eq!(call(&serving, &session, "find_note", "c1")["data"], "old");
    stop(serving);
}

#[test]
fn a_watched_change_is_for_new_sessions_and_an_old_one_keeps_its_version() {
    let project = Project::with(&["find-note"]);
    write_version(&project, "old");
    let serving = Serving::start(&project, &["--watch"]);
    let session = begin(&serving);
    assert_eq!(call(&serving, &session, "find_note", "c1")["data"], "old");
    write_version(&project, "new");
    serving.expect("reloaded");
    assert_eq!(call(&serving, &begin(&serving), "find_note", "c1")["data"], "new");
    assert_eq!(call(&serving, &session, "find_note", "c2")["data"], "old");
    stop(serving);
}

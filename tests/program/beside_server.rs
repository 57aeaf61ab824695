//! Commands beside a running `toolwright serve` on the same store: they go through the server, and are recorded there.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::mcp::Host;
use super::serve::Serving;
use super::support::{Project, Run};

/// A project with a tool that needs approval, `send_note`, and one that does not, `find_note`.
fn project() -> Project {
    let project = Project::with(&["find-note", "send-note"]);
    let schema = fs::read_to_string(project.path("send-note/schema.json")).unwrap();
    let mut schema: Value = serde_json::from_str(&schema).unwrap();
    schema["category"] = json!("action");
    schema["sideEffects"] = json!("writes");
    schema["idempotent"] = json!(false);
    schema["requiresConfirmation"] = json!(true);
    project.write("send-note/schema.json", schema.to_string());
    project.write(
        "send-note/handler.js",
        "export async function execute({ args, context }) {\n  context.progress(0.5, 'halfway');\n  return { ok: true, data: { sent: args.query, text: context.session.mode } };\n}\n",
    );
    project
}

fn audited(project: &Project) -> String {
    project.run(&["audit", "tail", "--format", "json"]).expect_code(0).stdout
}

fn envelope(run: &Run) -> Value {
    run.json()
}

#[test]
fn calls_and_approvals_go_through_the_server() {
    let project = project();
    let serving = Serving::start(&project, &[]);
    let called = project.run(&["call", "find-note", r#"{"query": "through"}"#]).expect_code(0);
    assert_eq!(envelope(&called)["data"], json!({ "query": "through" }));
    called.expect_stderr(&[&format!("through the server at http://{}", serving.address)]);

    let waiting = project.run(&["call", "send_note", r#"{"query": "first"}"#]).expect_code(1);
    let details = envelope(&waiting)["error"]["details"]["confirmation_request"].clone();
    let id = details["confirmation_id"].as_str().unwrap().to_owned();
    waiting.expect_stderr(&["toolwright approve conf_"]);
    let listed = project.run(&["confirmations", "--format", "json"]).expect_code(0).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!(id)));
    let approved = project.run(&["approve", &id]).expect_code(0);
    assert_eq!(envelope(&approved)["data"]["sent"], "first");
    project.run(&["approve", &id]).expect_code(1).expect_stderr(&["toolwright confirmations"]);
    project
        .run(&["approve", "conf_none"])
        .expect_code(1)
        .expect_stderr(&["no confirmation request `conf_none`"]);

    let waiting = project.run(&["call", "send_note", r#"{"query": "second"}"#]).expect_code(1);
    let id = envelope(&waiting)["error"]["details"]["confirmation_request"]["confirmation_id"].clone();
    let rejected = project.run(&["reject", id.as_str().unwrap(), "--reason", "not now"]).expect_code(0);
    assert_eq!(envelope(&rejected)["ok"], false);

    let again = project.run(&["call", "send_note", r#"{"query": "third"}"#]).expect_code(1);
    assert_eq!(envelope(&again)["ok"], false);
    let yes = project.run(&["call", "send_note", r#"{"query": "third"}"#, "--yes"]).expect_code(0);
    assert_eq!(envelope(&yes)["data"]["sent"], "third");
    yes.expect_stderr(&["halfway"]);
    let listed = project.run(&["confirmations", "--format", "json"]).expect_code(0).json();
    assert_eq!(listed, json!([]), "`--yes` has approved the waiting one");
    let audit = audited(&project);
    assert!(audit.contains("find_note") && audit.contains("send_note"), "{audit}");
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn sessions_go_on_beside_a_server_and_after_it() {
    let project = project();
    let call = |more: &[&str]| {
        project.run(
            &[&["call", "find_note", r#"{"query": "x"}"#, "--session", "s1", "--id", "c1"], more].concat(),
        )
    };
    let first = envelope(&call(&["--role", "staff"]).expect_code(0));
    assert_eq!(first["meta"]["replayed"], Value::Null);
    {
        let mut serving = Serving::start(&project, &[]);
        assert_eq!(envelope(&call(&[]).expect_code(0))["meta"]["replayed"], true, "from the same store");
        call(&["--role", "staff"]).expect_code(0);
        call(&["--role", "editor"]).expect_code(2).expect_stderr(&["has other roles"]);
        call(&["--mode", "voice"]).expect_code(2).expect_stderr(&["--mode text"]);
        let state = project.run(&[
            "call",
            "find_note",
            r#"{"query": "y"}"#,
            "--session",
            "s2",
            "--session-state",
            r#"{"step": 2}"#,
            "--user",
            "mira",
            "--role",
            "staff",
        ]);
        state.expect_code(0);
        serving.terminate();
        assert!(serving.ended().success());
    }
    assert!(!project.dir().join(".toolwright/state.db.server").exists());
    assert_eq!(envelope(&call(&[]).expect_code(0))["meta"]["replayed"], true);
    let other = ["call", "find_note", r#"{"query": "z"}"#, "--session", "s2", "--user", "noa"];
    project.run(&other).expect_code(2).expect_stderr(&["belongs to another user"]);
}

#[test]
fn an_mcp_host_is_served_by_the_server_that_uses_the_store() {
    let project = project();
    let mut serving = Serving::start(&project, &[]);
    let mut host = Host::start(&project, &[]);
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "host", "version": "1" } });
    assert_eq!(host.ask(1, "initialize", client)["result"]["serverInfo"]["name"], "toolwright");
    host.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let listed = host.ask(2, "tools/list", json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["find_note", "send_note", "reg_describe"]);
    let called = host.ask(3, "tools/call", json!({ "name": "find_note", "arguments": { "query": "piped" } }));
    assert_eq!(called["result"]["structuredContent"], json!({ "query": "piped" }));
    host.close();
    // A clean stop writes what is still queued.
    serving.terminate();
    assert!(serving.ended().success());
    assert!(audited(&project).contains("find_note"));
}

#[test]
fn a_failure_inside_the_server_is_shown_with_the_page_of_its_call() {
    let project = project();
    project
        .write("find-note/handler.js", "export async function execute() {\n  throw new Error('boom');\n}\n");
    let serving = Serving::start(&project, &[]);
    let failed = project.run(&["call", "find_note", r#"{"query": "x"}"#]).expect_code(1);
    let envelope = envelope(&failed);
    assert_eq!(envelope["error"]["type"], "INTERNAL", "{envelope}");
    let id = envelope["meta"]["executionId"].as_str().unwrap();
    let page = format!("http://{}/calls/{id}?session=", serving.address);
    let failed = failed.expect_stderr(&["the server's log has the cause", &page]);
    let path = failed.stderr.split(&serving.address).last().unwrap().trim();
    assert_eq!(serving.ask(&format!("GET {path}"), "accept: text/html\r\n", "").0, 200, "{path}");
}

#[test]
fn the_file_that_names_the_server_is_private_and_checked() {
    let project = project();
    let serving = Serving::start(&project, &[]);
    let path = project.dir().join(".toolwright/state.db.server");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(file["url"], format!("http://{}", serving.address));
    let call = || project.run(&["call", "find_note", r#"{"query": "x"}"#]);
    let change = |name: &str, value: Value| {
        let mut other = file.clone();
        other[name] = value;
        fs::write(&path, other.to_string()).unwrap();
    };
    let second = project.run(&["serve", "--listen", "127.0.0.1:0"]).expect_code(1);
    second.expect_stderr(&[
        "the store is in use",
        &format!("the server at http://{} uses it", serving.address),
    ]);
    change("version", json!("0.0.1"));
    call().expect_code(1).expect_stderr(&["toolwright 0.0.1", "restart the server"]);
    change("key", json!("twl_other"));
    call().expect_code(1).expect_stderr(&["refuses", "outdated"]);
    let mut host = Host::start(&project, &[]);
    assert!(host.ended_with_error().contains("the key is wrong"));
    fs::write(&path, &text).unwrap();
    call().expect_code(0);
    project
        .run(&["call", "find_note", "{}", "--artifact", "x.json"])
        .expect_code(2)
        .expect_stderr(&["--artifact"]);
    // A killed server leaves the file, which leads nowhere: the store is opened again.
    drop(serving);
    assert!(path.exists());
    let alone = call().expect_code(0);
    assert!(!alone.stderr.contains("through the server"), "{}", alone.stderr);
}

#[test]
fn a_block_from_the_terminal_does_not_lock_the_terminal_out() {
    let project = Project::reference();
    let block = r#"{"duration_seconds": 3600, "farewell_message": "Goodbye."}"#;
    let check = |project: &Project| {
        let blocked = project.run(&["call", "ignore_user", block, "--yes"]);
        let blocked = blocked.expect_code(0);
        assert_eq!(envelope(&blocked)["ok"], true, "{}", blocked.stdout);
        project.run(&["call", "validate_email", r#"{"email": "mira@studio.example"}"#]).expect_code(0);
        project.run(&["call", "ignore_user", block, "--yes", "--user", "visitor"]).expect_code(0);
        let refused = ["call", "validate_email", r#"{"email": "mira@studio.example"}"#, "--user", "visitor"];
        let refusal = project.run(&refused).expect_code(1);
        assert!((refusal.stdout + &refusal.stderr).contains("block"), "a visitor is blocked");
        project.run(&["unblock", "visitor"]).expect_code(0);
        project.run(&["unblock", "visitor"]).expect_code(1).expect_stderr(&["is not blocked"]);
        project.run(&refused).expect_code(0);
    };
    check(&project);
    let _serving = Serving::start(&project, &[]);
    check(&project);
}

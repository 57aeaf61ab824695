//! `toolwright audit`, and what is stored of a call: its record, session and confirmation request.

use std::fs;

use serde_json::{Value, json};

use super::support::{Project, Run};

/// The handler returns the time, so that a second run would be visible.
fn project(confirmation: Value) -> Project {
    let project = Project::with(&["find-note"]);
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(project.path("find-note/schema.json")).unwrap()).unwrap();
    for (name, value) in [
        ("category", json!("action")),
        ("sideEffects", json!("writes")),
        ("idempotent", json!(false)),
        ("requiresConfirmation", confirmation),
    ] {
        schema[name] = value;
    }
    project.write("find-note/schema.json", serde_json::to_string_pretty(&schema).unwrap() + "\n");
    let handler = "export async function execute() {\n  return { ok: true, data: { token: crypto.randomUUID() } };\n}\n";
    project.write("find-note/handler.js", handler);
    project
}

fn call(project: &Project, more: &[&str]) -> Run {
    project.run(&[&["call", "find_note", r#"{"query": "x"}"#, "--format", "json"], more].concat())
}

#[test]
fn the_same_id_in_the_same_session_is_answered_from_the_record_by_another_process() {
    let project = project(json!(false));
    let first = call(&project, &["--session", "s1", "--id", "c1"]).expect_code(0).json();
    let again = call(&project, &["--session", "s1", "--id", "c1"]).expect_code(0).json();
    assert_eq!((&again["data"], &again["meta"]["replayed"]), (&first["data"], &json!(true)));
    let other = call(&project, &["--session", "s2", "--id", "c1"]).expect_code(0).json();
    assert_ne!(other["data"], first["data"]);
    let args =
        ["call", "find_note", r#"{"query": "y"}"#, "--format", "json", "--session", "s1", "--id", "c1"];
    assert_eq!(project.run(&args).expect_code(1).json()["error"]["type"], "CONFLICT");
    call(&project, &["--session", "s1", "--mode", "voice"])
        .expect_code(2)
        .expect_stderr(&["s1 is a text session"]);
}

#[test]
fn a_call_that_needs_confirmation_waits_and_yes_approves_it() {
    let project = project(json!({ "when": "true", "preview": "Find {{query}}" }));
    let asked = call(&project, &[]).expect_code(1).expect_stderr(&["Find x", "--yes"]);
    assert_eq!(asked.json()["error"]["type"], "CONFIRMATION_REQUIRED");
    let done = call(&project, &["--yes"]).expect_code(0).json();
    assert!(done["data"]["token"].is_string());
    // The waiting request is the one that was answered.
    assert_eq!(done["meta"]["executionId"], asked.json()["meta"]["executionId"]);
    project.run(&["confirmations"]).expect_code(0).expect_stderr(&["no call waits"]);
    let events: Vec<Value> = project
        .run(&["audit", "export"])
        .expect_code(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["entry"]["event"].clone())
        .collect();
    assert_eq!(events, ["refused", "approved", "called"]);
    let list = |conditions: &[&str]| {
        let run = project.run(&[&["audit", "list", "--format", "json"], conditions].concat()).expect_code(0);
        let entry = |line| serde_json::from_str::<Value>(line).unwrap()["entry"]["event"].clone();
        run.stdout.lines().map(entry).collect::<Vec<_>>()
    };
    assert_eq!(list(&["--tool", "find_note", "--from", "2026-01-01"]), ["refused", "approved", "called"]);
    assert_eq!(list(&["--approver", "terminal"]), ["approved", "called"]);
    assert_eq!(list(&["--approver", "nobody"]), [""; 0]);
    assert_eq!(list(&["--until", "2026-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(list(&["--edited"]), [""; 0]);
    project.run(&["audit", "list", "--from", "yesterday"]).expect_code(2).expect_stderr(&["2026-11-19"]);
    // Without a waiting request, it creates and approves one.
    call(&project, &["--yes"]).expect_code(0);
}

#[test]
fn the_audit_log_is_verified_and_tampering_is_detected() {
    let project = project(json!(false));
    for _ in 0..3 {
        call(&project, &[]).expect_code(0);
    }
    let verified = project.run(&["audit", "verify", "--format", "json"]).expect_code(0).json();
    assert_eq!((&verified["ok"], &verified["rows"]), (&json!(true), &json!(3)));
    let heads: Vec<String> = verified["heads"]
        .as_object()
        .unwrap()
        .values()
        .map(|head| head.as_str().unwrap().to_owned())
        .collect();
    project.run(&["audit", "verify", "--head", &heads[0]]).expect_code(0).expect_stderr(&["3 entries"]);
    project.run(&["audit", "verify", "--head", &"0".repeat(64)]).expect_code(1).expect_stderr(&["truncated"]);
    let tail = project.run(&["audit", "tail", "-n", "2"]).expect_code(0);
    assert_eq!(tail.stdout.lines().count(), 3, "a header and two rows");
    assert!(tail.stdout.contains("find_note") && tail.stdout.contains("called"), "{}", tail.stdout);

    let file = rusqlite::Connection::open(project.dir().join(".toolwright/state.db")).unwrap();
    let sql = "UPDATE audit SET entry = replace(entry, 'called', 'denied') WHERE number = 2";
    assert_eq!(file.execute(sql, []).unwrap(), 1);
    drop(file);
    project.run(&["audit", "verify"]).expect_code(1).expect_stderr(&["row 2 was edited", "help"]);
    let file = rusqlite::Connection::open(project.dir().join(".toolwright/state.db")).unwrap();
    assert_eq!(file.execute("DELETE FROM audit WHERE number = 2", []).unwrap(), 1);
    drop(file);
    project.run(&["audit", "verify"]).expect_code(1).expect_stderr(&["row 3 does not follow"]);
}

#[test]
fn saved_heads_show_that_the_end_or_all_of_the_log_was_deleted() {
    let project = project(json!(false));
    for _ in 0..3 {
        call(&project, &[]).expect_code(0);
    }
    let heads = project.run(&["audit", "heads"]).expect_code(0).stdout;
    let head: Value = serde_json::from_str(&heads).unwrap();
    assert_eq!(head["position"], 3);
    let file = project.dir().join("heads.jsonl");
    std::fs::write(&file, &heads).unwrap();
    call(&project, &[]).expect_code(0);
    let verify = ["audit", "verify", "--heads", file.to_str().unwrap()];
    project.run(&verify).expect_code(0).expect_stderr(&["4 entries"]);

    let database = project.dir().join(".toolwright/state.db");
    let delete = |sql: &str| rusqlite::Connection::open(&database).unwrap().execute(sql, []).unwrap();
    delete("DELETE FROM audit WHERE number > 2");
    project.run(&["audit", "verify"]).expect_code(0);
    let chain = head["chain"].as_str().unwrap();
    let missing = format!("row 3 of the chain {chain} is not the one whose hash was saved");
    project.run(&verify).expect_code(1).expect_stderr(&[&missing, "help"]);
    // A log that continues after that does not hide it.
    call(&project, &[]).expect_code(0);
    project.run(&verify).expect_code(1).expect_stderr(&[&missing]);
    delete("DELETE FROM audit");
    project.run(&verify).expect_code(1).expect_stderr(&[&missing]);

    std::fs::write(&file, "no heads").unwrap();
    project.run(&verify).expect_code(1).expect_stderr(&["heads.jsonl: line 1", "toolwright audit heads"]);
}

#[test]
fn a_missing_or_invalid_store_is_reported() {
    let project = project(json!(false));
    project.run(&["audit", "tail"]).expect_code(1).expect_stderr(&["there are no recorded calls yet"]);
    call(&project, &["--store", "redis://x"]).expect_code(2).expect_stderr(&["sqlite:PATH, postgres://"]);
    call(&project, &["--store", "memory:"]).expect_code(0);
    assert!(!project.dir().join(".toolwright/state.db").exists());
    fs::write(project.dir().join("toolwright.toml"), "[store]\nurl = \"sqlite:kept/here.db\"\n").unwrap();
    call(&project, &[]).expect_code(0);
    assert!(project.dir().join("kept/here.db").exists());
    fs::write(project.dir().join("kept/broken.db"), "not a database, certainly not one that could be opened")
        .unwrap();
    call(&project, &["--store", "sqlite:kept/broken.db"]).expect_code(1).expect_stderr(&["help"]);
    assert!(fs::read_to_string(project.dir().join("kept/broken.db")).unwrap().starts_with("not a database"));
}

/// The only waiting confirmation request.
fn waiting(project: &Project) -> Value {
    let listed = project.run(&["confirmations", "--format", "json"]).expect_code(0).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    listed[0].clone()
}

#[test]
fn a_confirmation_request_is_listed_and_answered_by_another_process() {
    let project = project(json!({ "when": "true", "preview": "Find {{query}}" }));
    project.run(&["confirmations"]).expect_code(1).expect_stderr(&["there are no recorded calls yet"]);
    let asked = call(&project, &[]).expect_code(1);
    let request = asked.json()["error"]["details"]["confirmation_request"].clone();
    let question = waiting(&project);
    assert_eq!((&question["id"], &question["args"]), (&request["confirmation_id"], &request["args"]));
    assert!(!question.to_string().contains(request["confirmation_token"].as_str().unwrap()));
    let id = question["id"].as_str().unwrap();
    let lines = project.run(&["confirmations"]).expect_code(0).stdout;
    assert!(lines.contains(id) && lines.contains("Find x") && lines.contains("EXPIRES IN"), "{lines}");

    let forged = format!("{id}.{}", "0".repeat(64));
    project
        .run(&["approve", &forged])
        .expect_code(1)
        .expect_stderr(&["the token of the confirmation request is wrong"]);
    let wrong = ["approve", id, "--args", r#"{"qury": 1}"#];
    project.run(&wrong).expect_code(1).expect_stderr(&["did you mean `query`"]);
    let approve = ["approve", id, "--args", r#"{"query": "y"}"#, "--format", "json"];
    let done = project.run(&approve).expect_code(0).json();
    assert!(done["data"]["token"].is_string(), "{done}");
    project.run(&["approve", id]).expect_code(1).expect_stderr(&["was answered already"]);
    project.run(&["approve", "conf_none"]).expect_code(1).expect_stderr(&["toolwright confirmations"]);

    call(&project, &["--session", "s2"]).expect_code(1).expect_stderr(&["toolwright approve conf_", "--yes"]);
    let id = waiting(&project)["id"].as_str().unwrap().to_owned();
    project.run(&["confirmations", "--session", "s1"]).expect_code(0).expect_stderr(&["no call waits"]);
    let rejected =
        project.run(&["reject", &id, "--reason", "too dear", "--format", "json"]).expect_code(0).json();
    assert_eq!(rejected["error"]["message"], "The user declined this call: too dear");
    project.run(&["confirmations"]).expect_code(0).expect_stderr(&["no call waits"]);
}

#[test]
fn a_call_that_waits_for_approval_runs_with_the_tools_that_it_was_made_with() {
    let project = project(json!(true));
    call(&project, &["--session", "s1"]).expect_code(1);
    project
        .write("find-note/handler.js", "export async function execute() { return { ok: true, data: 2 }; }\n");
    let id = waiting(&project)["id"].as_str().unwrap().to_owned();
    let envelope = project.run(&["approve", &id, "--format", "json"]).expect_code(0).json();
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_ne!(envelope["data"], 2, "{envelope}");
}

#[test]
fn waiting_calls_are_listed_in_pages() {
    let project = project(json!({ "when": "true", "preview": "Find {{query}}" }));
    for session in ["s1", "s2", "s3"] {
        call(&project, &["--session", session]).expect_code(1);
    }
    let list =
        |more: &[&str]| project.run(&[&["confirmations", "--format", "json"], more].concat()).expect_code(0);
    let sessions = |run: &Run| {
        run.json().as_array().unwrap().iter().map(|asked| asked["session"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sessions(&list(&[])), ["s1", "s2", "s3"]);
    assert_eq!(sessions(&list(&["--session", "s2"])), ["s2"]);
    let first = list(&["--limit", "2"]);
    assert_eq!(sessions(&first), ["s1", "s2"]);
    let place = first.stderr.split("--after ").nth(1).unwrap().split('`').next().unwrap();
    let second = list(&["--limit", "2", "--after", place]);
    assert_eq!((sessions(&second), second.stderr.as_str()), (vec![json!("s3")], ""));
    let wrong = project.run(&["confirmations", "--after", "yesterday"]);
    wrong.expect_code(2).expect_stderr(&["TIME.ID"]);
}

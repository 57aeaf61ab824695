//! `toolwright sessions`, on the store and through the server that uses it.

use serde_json::{Value, json};

use super::serve::Serving;
use super::support::Project;

fn call(project: &Project, session: &str) -> Value {
    let args =
        ["call", "find_note", r#"{"query": "x"}"#, "--session", session, "--user", "mira", "--role", "staff"];
    serde_json::from_str(&project.run(&args).stdout).unwrap()
}

/// Lists, shows and ends the sessions `s1` and `s2`, of which the second is newer.
fn list_show_and_end(project: &Project) {
    let list = |more: &[&str]| {
        project.run(&[&["sessions", "list", "--format", "json"], more].concat()).expect_code(0).json()
    };
    let ids = |page: &Value| -> Vec<Value> {
        page["sessions"].as_array().unwrap().iter().map(|session| session["sessionId"].clone()).collect()
    };
    assert_eq!(ids(&list(&[])), ["s2", "s1"]);
    let first = list(&["--limit", "1"]);
    assert_eq!(ids(&first), ["s2"]);
    assert_eq!(ids(&list(&["--after", first["next"].as_str().unwrap()])), ["s1"]);

    let table = project.run(&["sessions", "list"]).expect_code(0).stdout;
    assert!(table.starts_with("SESSION  USER  MODE  STANDING  TURN  TOOLSET"), "{table}");
    assert!(table.contains("s1       mira  text  active"), "{table}");
    let shown = project.run(&["sessions", "show", "s1", "--format", "json"]).expect_code(0).json();
    assert_eq!(shown["principal"], json!({ "id": "mira", "org": null, "roles": ["staff"] }));
    assert_eq!(project.run(&["sessions", "end", "s1"]).expect_code(0).stdout, "");
    let shown = project.run(&["sessions", "show", "s1"]).expect_code(0).stdout;
    assert!(shown.contains("standing      ended"), "{shown}");
    project
        .run(&["sessions", "end", "s1"])
        .expect_code(0)
        .expect_stderr(&["the session s1 has ended already"]);
    assert_eq!(call(project, "s1")["error"]["type"], "SESSION_INACTIVE");
    for action in ["show", "end"] {
        let unknown = project.run(&["sessions", action, "none"]).expect_code(1);
        unknown.expect_stderr(&["there is no session `none`", "toolwright sessions list"]);
    }
    project.run(&["sessions", "list", "--after", "s1"]).expect_code(2).expect_stderr(&["TIME.ID"]);
}

#[test]
fn sessions_are_listed_shown_and_ended_in_the_store() {
    let project = Project::with(&["find-note"]);
    project.run(&["sessions", "list"]).expect_code(1).expect_stderr(&["there are no recorded calls yet"]);
    for session in ["s1", "s2"] {
        assert_eq!(call(&project, session)["ok"], true);
    }
    list_show_and_end(&project);
}

#[test]
fn sessions_are_listed_shown_and_ended_through_a_server() {
    let project = Project::with(&["find-note"]);
    let serving = Serving::start(&project, &[]);
    for session in ["s1", "s2"] {
        assert_eq!(call(&project, session)["ok"], true);
    }
    let listed = project.run(&["sessions", "list"]).expect_code(0);
    listed.expect_stderr(&[&format!("through the server at http://{}", serving.address)]);
    list_show_and_end(&project);
}

//! `toolwright chat` with the offline agent: streams, calls tools, asks for approval, continues.

use super::support::Project;

#[test]
fn a_chat_runs_tools_and_continues() {
    let project = Project::reference();
    let call = r#"/validate_email {"email": "mira@studio.example"}"#;
    let first = project.run(&["chat", "--agent", "offline", call]).expect_code(0);
    assert!(first.stdout.contains("\"valid\": true"), "{}", first.stdout);
    let first = first.expect_stderr(&["→ validate_email", "✓ validate_email"]);
    let session =
        first.stderr.split("session ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let next =
        project.run(&["chat", "--agent", "offline", "--continue", "--format", "json", call]).expect_code(0);
    assert!(next.stderr.contains(&session), "{}", next.stderr);
    let events: Vec<serde_json::Value> =
        next.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["event"]["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("turn_started", "turn_ended"), "{kinds:?}");
    assert_ne!(events[0]["turn"], "msg_1", "a new turn of the same session");
}

#[test]
fn without_a_terminal_a_call_waits_for_approval() {
    let project = Project::with(&["find-note", "send-note"]);
    let confirmed = "\"requiresConfirmation\": true";
    project.edit("send-note/schema.json", "\"requiresConfirmation\": false", confirmed);
    let asked =
        project.run(&["chat", "--agent", "offline", r#"/send_note {"query": "hello"}"#]).expect_code(0);
    let asked = asked.expect_stderr(&["approve?", "toolwright approve conf_"]);
    let id = asked.stderr.split("toolwright approve ").nth(1).unwrap().split('`').next().unwrap();
    project.run(&["reject", id]).expect_code(0);
}

#[test]
fn a_chat_that_cannot_begin_says_why() {
    let project = Project::with(&["find-note"]);
    project
        .run(&["chat", "--continue", "--agent", "offline", "hi"])
        .expect_code(2)
        .expect_stderr(&["no chat to continue"]);
    let run = project.run(&["chat", "--agent", "offline", "--session", "sess_none", "hi"]);
    run.expect_code(2).expect_stderr(&["there is no session `sess_none`"]);
    project
        .run(&["chat", "--agent", "gpt", "hi"])
        .expect_code(1)
        .expect_stderr(&["`openai-chat`", "`offline`"]);
    let mut command = project.command(&["chat", "--agent", "anthropic", "hi"]);
    command.env_remove("ANTHROPIC_API_KEY");
    super::support::run(command).expect_code(1).expect_stderr(&["set ANTHROPIC_API_KEY"]);
}

//! `toolwright call`: one call from the terminal; the envelope on stdout, the exit code by `ok`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::{Project, Run, run};

fn call(project: &Project, args: &[&str]) -> Run {
    project.run(&[&["call"], args, &["--format", "json"]].concat())
}

/// Replaces the body of `execute` in the handler of a sound tool.
fn with_handler(body: &str) -> Project {
    let project = Project::with(&["find-note"]);
    let text = format!("export async function execute({{ args, context }}) {{ {body} }}\n");
    project.write("find-note/handler.js", text);
    project
}

#[test]
fn a_call_that_succeeds_prints_its_envelope_and_exits_with_0() {
    let envelope =
        call(&Project::with(&["find-note"]), &["find_note", r#"{"query": "light"}"#]).expect_code(0).json();
    assert_eq!((&envelope["ok"], &envelope["data"]), (&json!(true), &json!({ "query": "light" })));
    assert_eq!(envelope["intents"], json!([]));
    let meta = &envelope["meta"];
    assert_eq!((&meta["tool"], &meta["toolVersion"]), (&json!("find_note"), &json!("1.0.0")));
    assert!(meta["registryVersion"].as_str().unwrap().starts_with("1.0."));
    assert!(meta["duration"].is_u64() && meta["executionId"].is_string());
}

#[test]
fn a_refused_call_tells_the_model_how_to_correct_it() {
    let run = call(&Project::reference(), &["kb_search", r#"{"query":1,"topk":3}"#]).expect_code(1);
    let mut envelope = run.json();
    for changing in ["duration", "executionId", "registryVersion"] {
        envelope["meta"].as_object_mut().unwrap().remove(changing).unwrap();
    }
    insta::assert_snapshot!(serde_json::to_string_pretty(&envelope).unwrap());
}

#[test]
fn arguments_come_from_the_command_line_a_file_or_stdin() {
    let project = Project::with(&["find-note"]);
    fs::write(project.dir().join("args.json"), r#"{"query": "from a file"}"#).unwrap();
    assert_eq!(
        call(&project, &["find-note", "@args.json"]).expect_code(0).json()["data"]["query"],
        "from a file"
    );
    for args in [&["find_note"][..], &["find_note", "-"]] {
        let mut command = project.command(&[&["call"], args, &["--format", "json"]].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(br#"{"query": "from a pipe"}"#).unwrap();
        let output = child.wait_with_output().unwrap();
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(envelope["data"]["query"], "from a pipe");
    }
    // An empty stdin means no arguments, which this tool refuses.
    assert_eq!(call(&project, &["find_note"]).expect_code(1).json()["error"]["type"], "VALIDATION");
}

#[test]
fn mode_and_state_reach_the_handler() {
    let project = with_handler(
        "return { ok: true, data: { mode: context.mode, session: context.session, voice: context.voice.isActive() } }",
    );
    let args = ["find_note", r#"{"query": "x"}"#, "--mode", "voice", "--session-state", r#"{"step": 2}"#];
    let data = &call(&project, &args).expect_code(0).json()["data"];
    assert_eq!((&data["mode"], &data["voice"]), (&json!("voice"), &json!(true)));
    assert_eq!(
        (&data["session"]["state"], &data["session"]["isActive"]),
        (&json!({ "step": 2 }), &json!(true))
    );
}

#[test]
fn wrong_usage_exits_with_2_and_suggests_a_fix() {
    let project = Project::with(&["find-note"]);
    for (args, parts) in [
        (
            &["find_note", "{query: 1}"][..],
            &["the arguments on the command line must be JSON", "quote the JSON"][..],
        ),
        (&["find_note", r#"{"query": 36893488147419103232}"#], &["36893488147419103232", "as a string"]),
        (&["find_note", "@absent.json"], &["cannot read the arguments in absent.json"]),
        (&["find_note", "{}", "--session-state", "[1]"], &["--session-state must be a JSON object"]),
        (&["find_note", "{}", "--session-state", "{"], &["--session-state must be JSON"]),
        (&["find_note", "{}", "--mode", "song"], &["text"]),
    ] {
        let run = call(&project, args).expect_code(2).expect_stderr(parts);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn an_unknown_tool_is_an_envelope_too() {
    let envelope = call(&Project::with(&["find-note"]), &["find_noet", "{}"]).expect_code(1).json();
    assert_eq!(envelope["error"]["type"], "NOT_FOUND");
    assert_eq!(envelope["error"]["suggestion"], "Did you mean `find_note`?");
}

#[test]
fn the_cause_of_a_failure_is_in_the_log_and_not_in_the_envelope() {
    let project = with_handler("console.warn('about to fail'); throw new Error('the secret cause')");
    let run = call(&project, &["find_note", r#"{"query": "x"}"#]).expect_code(1);
    assert_eq!(run.json()["error"]["type"], "INTERNAL");
    assert!(!run.stdout.contains("secret"), "{}", run.stdout);
    run.expect_stderr(&["the secret cause", "about to fail", "find_note"]);
}

#[test]
fn a_handler_cannot_forge_lines_of_the_log_or_control_the_terminal() {
    let text = r"'one\nWARN forged \u001b[2J\u202eend'";
    let project = with_handler(&format!(
        "console.warn({text}); context.progress(0.5, {text}); return {{ ok: true, data: {text} }}"
    ));
    let run = call(&project, &["find_note", r#"{"query": "x"}"#]).expect_code(0);
    let escaped = r"one\nWARN forged \u001b[2J\u202eend";
    assert_eq!(run.stderr.matches(escaped).count(), 2, "{}", run.stderr);
    assert!(!run.stderr.contains(['\u{1b}', '\u{202e}']), "{}", run.stderr);
    assert!(run.stdout.contains(escaped), "{}", run.stdout);
    assert_eq!(run.json()["data"], "one\nWARN forged \u{1b}[2J\u{202e}end");
}

#[test]
fn a_built_directory_can_be_moved_and_a_changed_handler_is_refused() {
    let project = Project::with(&["find-note"]);
    project.build();
    let moved = project.dir().join("elsewhere");
    fs::rename(project.tools(), &moved).unwrap();
    let artifact = moved.join("tool_registry.json");
    let args = ["find_note", r#"{"query": "x"}"#, "--artifact", artifact.to_str().unwrap()];
    call(&project, &args).expect_code(0);
    fs::write(
        moved.join("find-note/handler.js"),
        "export async function execute() { return { ok: true, data: 'evil' } }",
    )
    .unwrap();
    let run = call(&project, &args).expect_code(1);
    let message = run.json()["error"]["message"].clone();
    assert_eq!(message, "The tool `find_note` cannot be used: it failed to load.");
    run.expect_stderr(&[
        "the handler of `find_note` has changed since it was built",
        "run `toolwright build`",
    ]);
}

#[test]
fn fetch_reaches_what_the_configuration_lists_for_the_tool() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let _ =
                socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello");
        }
    });
    let project = with_handler(&format!(
        "const answer = await context.http.fetch('http://127.0.0.1:{port}/'); return {{ ok: true, data: answer.body }}"
    ));
    let args = ["find_note", r#"{"query": "x"}"#];
    call(&project, &args)
        .expect_code(1)
        .expect_stderr(&["no host is allowed for this tool", "[tool.<id>.http] allow"]);
    let text = format!("[tool.find_note.http]\nallow = [\"127.0.0.1:{port}\"]\n");
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    assert_eq!(call(&project, &args).expect_code(0).json()["data"], "hello");
    fs::write(project.dir().join("toolwright.toml"), "[tool.find_note.http]\nallow = [\"not a host\"]\n")
        .unwrap();
    call(&project, &args)
        .expect_code(1)
        .expect_stderr(&["`[tool.find_note.http] allow` cannot be used", "help"]);
}

#[test]
fn the_limits_of_handlers_are_configurable() {
    let project = with_handler(
        "const all = []; for (let i = 0; i < 40; i++) all.push(new Array(20000).fill(i)); return { ok: true, data: all.length }",
    );
    let args = ["find_note", r#"{"query": "x"}"#];
    call(&project, &args).expect_code(0);
    fs::write(project.dir().join("toolwright.toml"), "[handlers]\nmemory_mb = 4\n").unwrap();
    let envelope = call(&project, &args).expect_code(1).json();
    assert_eq!(envelope["error"]["message"], "The tool exceeded its limit of 4 MB of memory.");
    let project = with_handler("while (true) {}");
    fs::write(project.dir().join("toolwright.toml"), "[handlers]\ncpu_ms = 100\n").unwrap();
    let envelope = run(project.command(&["call", "find_note", r#"{"query": "x"}"#])).expect_code(1).json();
    assert_eq!(envelope["error"]["message"], "The tool exceeded its limit of 100 ms of CPU time.");
}

#[test]
fn the_principal_of_a_call_has_an_id_an_org_and_roles() {
    let project = Project::with(&["find-note"]);
    let condition = r#"user.id == \"mira\" && user.org == \"studio\" && \"editor\" in user.roles"#;
    let text = format!("800, \"availability\": {{\"condition\": \"{condition}\"}},");
    project.edit("find-note/schema.json", "800,", &text);
    let args = ["find_note", r#"{"query": "x"}"#];
    let by = ["--user", "mira", "--org", "studio", "--role", "staff", "--role", "editor"];
    assert_eq!(call(&project, &args).expect_code(1).json()["error"]["type"], "UNAVAILABLE");
    call(&project, &[&args[..], &by, &["--session", "s1"]].concat()).expect_code(0);
    // The session has stored them.
    call(&project, &[&args[..], &["--session", "s1"]].concat()).expect_code(0);
    call(&project, &[&args[..], &["--session", "s1", "--user", "eve"]].concat())
        .expect_code(2)
        .expect_stderr(&["another user"]);
}

#[test]
fn the_number_of_build_warnings_is_printed() {
    let project = Project::with(&["find-note"]);
    let args = ["call", "find_note", r#"{"query": "x"}"#];
    assert_eq!(project.run(&args).expect_code(0).stderr, "");
    project.write("find-note/doc_summary.md", "a\nb\nc\nd\ne\nf\n");
    let run = project.run(&args).expect_code(0);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("1 warning"), "{}", run.stderr);
    assert_eq!(call(&project, &args[1..]).expect_code(0).stderr, "");
}

#[test]
fn an_image_without_a_host_is_not_sent() {
    let refused =
        Project::reference().run(&["call", "send_image", r#"{"image_url": "http://"}"#]).expect_code(1);
    assert_eq!(refused.json()["error"]["type"], "VALIDATION");
}

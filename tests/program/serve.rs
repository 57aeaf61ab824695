//! `toolwright serve` and `toolwright keys`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Guard, Project, TIMEOUT, repository};

/// A running server, its address, and its output.
pub struct Serving {
    child: Guard,
    pub address: String,
    /// The lines before that of the address.
    first_lines: Vec<String>,
    lines: Receiver<String>,
}

impl Serving {
    pub fn start(project: &Project, args: &[&str]) -> Self {
        let mut command = project.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        let mut child = Guard(command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
        let stderr = BufReader::new(child.0.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let mut serving = Self { child, address: String::new(), first_lines: Vec::new(), lines };
        let (line, first_lines) = serving.read_until("http://");
        let rest = line.split("http://").nth(1).unwrap();
        (serving.address, serving.first_lines) = (rest.split(' ').next().unwrap().to_owned(), first_lines);
        serving
    }

    /// Waits for a line that contains `part`.
    pub fn expect(&self, part: &str) -> String {
        self.read_until(part).0
    }

    /// That line, and those before it.
    fn read_until(&self, part: &str) -> (String, Vec<String>) {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(line) if line.contains(part) => return (line, seen),
                Ok(line) => seen.push(line),
                Err(_) => panic!("no {part:?} in {seen:#?}"),
            }
        }
    }

    /// Sends a request; the caller reads the response.
    pub fn send(&self, head: &str, more: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, length) = (&self.address, body.len());
        write!(stream, "{head} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n{more}content-length: {length}\r\n\r\n{body}").unwrap();
        stream
    }

    pub fn ask(&self, head: &str, more: &str, body: &str) -> (u16, Value) {
        answer(self.send(head, more, body))
    }

    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    pub fn signal(&self, signal: &str) {
        let id = self.child.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    pub fn ended(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < TIMEOUT, "it goes on");
            std::thread::yield_now();
        }
    }
}

fn answer(mut stream: TcpStream) -> (u16, Value) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn it_serves_the_reference_toolset() {
    let project = Project::reference();
    let mut serving = Serving::start(&project, &["--log-format", "json"]);
    let (status, list) = serving.ask("GET /v1/tools", "", "");
    assert_eq!((status, list["tools"].as_array().unwrap().len()), (200, 15));
    let body = r#"{"args": {"results": [{"id": "a", "score": 0.5}]}, "executionId": "one"}"#;
    let (status, envelope) =
        serving.ask("POST /v1/tools/rank_results/call", "x-request-id: trace-1\r\n", body);
    assert_eq!((status, &envelope["ok"]), (200, &json!(true)), "{envelope}");
    let line: Value = serde_json::from_str(&serving.expect("trace-1")).unwrap();
    assert_eq!((&line["path"], &line["status"]), (&json!("/v1/tools/rank_results/call"), &json!(200)));
    assert_eq!(line["principal"], "local");
    serving.ask("POST /v1/confirmations/conf_a1.5ec4e7/approve", "x-request-id: trace-2\r\n", "{}");
    let line = serving.expect("trace-2");
    assert!(line.contains("/v1/confirmations/conf_a1/approve") && !line.contains("5ec4e7"), "{line}");
    serving.terminate();
    assert!(serving.ended().success());
    let audit = project.run(&["audit", "tail", "--format", "json"]).expect_code(0).stdout;
    assert!(audit.contains("rank_results"), "{audit}");
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn a_stopped_server_leaves_a_state_file_that_is_complete_without_its_log() {
    for arguments in [&[][..], &["--watch"]] {
        let project = Project::reference();
        let mut serving = Serving::start(&project, arguments);
        let body = r#"{"args": {"results": [{"id": "a", "score": 0.5}]}, "executionId": "one"}"#;
        assert_eq!(serving.ask("POST /v1/tools/rank_results/call", "", body).0, 200);
        serving.terminate();
        assert!(serving.ended().success());
        let state = project.dir().join(".toolwright/state.db");
        let copy = project.dir().join("copy.db");
        std::fs::copy(state, &copy).unwrap();
        let store = format!("sqlite:{}", copy.display());
        let audit = project.run(&["audit", "tail", "--store", &store]).expect_code(0).stdout;
        assert!(audit.contains("rank_results"), "{arguments:?}: {audit}");
    }
}

#[test]
fn a_running_call_is_finished_before_the_server_stops() {
    let project = Project::with(&["find-note"]);
    let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = upstream.local_addr().unwrap().port();
    let handler = format!(
        "export async function execute({{ context }}) {{\n  const answer = await context.http.fetch('http://127.0.0.1:{port}/');\n  return {{ ok: true, data: {{ status: answer.status }} }};\n}}\n"
    );
    project.write("find-note/handler.js", handler);
    let config = format!("[tool.find_note.http]\nallow = [\"127.0.0.1:{port}\"]\n");
    std::fs::write(project.dir().join("toolwright.toml"), config).unwrap();
    let mut serving = Serving::start(&project, &[]);
    let stream = serving.send("POST /v1/tools/find_note/call", "", r#"{"args": {"query": "x"}}"#);
    let (mut fetched, _) = upstream.accept().unwrap();
    // Closing with unread bytes would reset the connection and lose the response.
    assert!(fetched.read(&mut [0; 4096]).unwrap() > 0);
    serving.terminate();
    serving.expect("stopping");
    fetched.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
    drop(fetched);
    let (status, envelope) = answer(stream);
    assert_eq!((status, &envelope["data"]), (200, &json!({ "status": 204 })), "{envelope}");
    assert!(serving.ended().success());
}

#[test]
fn a_changed_tool_is_served_without_a_restart() {
    let project = Project::with(&["find-note"]);
    let serving = Serving::start(&project, &["--watch"]);
    let call = || serving.ask("POST /v1/tools/find_note/call", "", r#"{"args": {"query": "x"}}"#).1;
    assert_eq!(call()["data"], json!({ "query": "x" }));
    project.write(
        "find-note/handler.js",
        "export async function execute() { return { ok: true, data: 'new' }; }\n",
    );
    serving.expect("reloaded");
    assert_eq!(call()["data"], "new");
    project.write("find-note/handler.js", "export async function execute( {");
    serving.expect("the previous toolset stays in use");
    assert_eq!(call()["data"], "new", "what was prepared goes on");
}

#[test]
fn keys_are_created_listed_and_revoked() {
    let project = Project::with(&["find-note"]);
    let made = project.run(&["keys", "create", "mira", "--org", "studio", "--role", "staff"]).expect_code(0);
    let token = made.stdout.trim();
    assert!(token.starts_with("twk_"), "{made:?}");
    let listed = project.run(&["keys", "list", "--format", "json"]).expect_code(0);
    assert!(!listed.stdout.contains(token.rsplit('_').next().unwrap()));
    let row = &listed.json()[0];
    assert_eq!(
        (&row["name"], &row["org"], &row["roles"], &row["standing"]),
        (&json!("mira"), &json!("studio"), &json!(["staff"]), &json!("active"))
    );
    let serving = Serving::start(&project, &[]);
    assert_eq!(serving.ask("GET /v1/tools", "", "").0, 401);
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(serving.ask("GET /v1/tools", &bearer, "").0, 200);
    project.run(&["keys", "revoke", row["id"].as_str().unwrap()]).expect_code(0);
    assert_eq!(project.run(&["keys", "list", "--format", "json"]).json()[0]["standing"], "revoked");
    let started = Instant::now();
    while serving.ask("GET /v1/tools", &bearer, "").0 != 401 {
        assert!(started.elapsed() < TIMEOUT, "a revoked key goes on opening");
    }
    project
        .run(&["keys", "revoke", "nobody"])
        .expect_code(1)
        .expect_stderr(&["no key `nobody`", "keys list"]);
}

#[test]
fn a_key_has_a_whole_number_of_days_and_names_without_spaces_around_them() {
    let project = Project::with(&["find-note"]);
    let create = |args: &[&str]| project.run(&[&["keys", "create", "mira"], args].concat()).expect_code(2);
    for days in ["soon", "0", "1.5"] {
        create(&["--expires", days]).expect_stderr(&["write whole days, at least 1"]);
    }
    create(&["--role", "Admin "]).expect_stderr(&["\"Admin \" cannot be used", "without spaces around them"]);
    let missing = project.run(&["voice", "--wav", "nope.wav"]).expect_code(1);
    let missing = missing.expect_stderr(&["cannot read nope.wav", "name a WAV file that exists"]);
    assert!(!missing.stderr.contains("ffmpeg"), "{}", missing.stderr);
}

#[test]
fn a_source_that_does_not_exist_is_reported_once() {
    let project = Project::with(&["find-note"]);
    std::fs::write(project.dir().join("toolwright.toml"), "[kb]\nsources = [\"nope\"]\n").unwrap();
    let mut serving = Serving::start(&project, &[]);
    let is_warning = |line: &&String| line.contains("nope: no such file");
    let line = serving.first_lines.iter().find(is_warning).cloned();
    let line = line.unwrap_or_else(|| serving.expect("nope: no such file"));
    assert!(line.contains("correct `[kb] sources` in toolwright.toml"), "{line}");
    assert!(serving.first_lines.iter().filter(is_warning).count() <= 1, "{:#?}", serving.first_lines);
    // Once it answers, it handles the signal.
    assert_eq!(serving.ask("GET /v1/tools", "", "").0, 200);
    serving.terminate();
    serving.ended();
    let rest: Vec<String> = serving.lines.iter().collect();
    assert!(!rest.iter().any(|line| line.contains("nope")), "{rest:#?}");
}

#[test]
fn an_open_address_without_keys_is_refused() {
    let project = Project::with(&["find-note"]);
    let refused = project.run(&["serve", "--listen", "0.0.0.0:0"]).expect_code(1);
    refused.expect_stderr(&["reachable from other machines", "toolwright keys create"]);
    project.run(&["serve", "--jwt-issuer", "x"]).expect_code(1).expect_stderr(&["jwks, issuer and audience"]);
    project.run(&["serve", "--max-body-kb", "0"]).expect_code(1).expect_stderr(&["must be at least 1"]);
}

#[test]
fn settings_come_from_the_file_the_environment_and_flags() {
    let project = Project::with(&["find-note"]);
    let text = "[server]\nlisten = \"127.0.0.1:7001\"\nmax_body_kb = 7\nmax_requests = 9\n[server.jwt]\njwks = \"keys/jwks.json\"\nissuer = \"i\"\naudience = \"a\"\n[store]\nurl = \"postgres://me:secret@db/tools\"\n";
    std::fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    let mut command = project.command(&["serve", "--dump-config", "--max-requests", "11"]);
    command.env("TOOLWRIGHT_MAX_BODY_KB", "8").env("TOOLWRIGHT_MAX_REQUESTS", "10");
    let dumped = super::support::run(command).expect_code(0).stdout;
    let all: toml::Table = dumped.parse().unwrap();
    let server = all["server"].as_table().unwrap();
    assert_eq!(server["listen"].as_str(), Some("127.0.0.1:7001"));
    assert_eq!(server["max_body_kb"].as_integer(), Some(8));
    assert_eq!(server["max_requests"].as_integer(), Some(11));
    assert_eq!(server["header_timeout_s"].as_integer(), Some(30));
    assert_eq!(server["jwt"]["jwks"].as_str(), Some("keys/jwks.json"));
    assert!(!dumped.contains("secret") && dumped.contains("postgres://me@db/tools"), "{dumped}");
    std::fs::write(project.dir().join("toolwright.toml"), &dumped).unwrap();
    assert_eq!(project.run(&["serve", "--dump-config"]).expect_code(0).stdout, dumped);
}

#[test]
fn the_example_file_has_every_setting_with_its_default() {
    let project = Project::with(&["find-note"]);
    let plain = project.run(&["serve", "--dump-config"]).expect_code(0).stdout;
    let example = std::fs::read_to_string(repository().join("toolwright.example.toml")).unwrap();
    std::fs::write(project.dir().join("toolwright.toml"), &example).unwrap();
    assert_eq!(project.run(&["serve", "--dump-config"]).expect_code(0).stdout, plain);
    // The example has every setting, set or in a comment.
    let all: toml::Table = plain.parse().unwrap();
    let names = all.values().filter_map(|table| table.as_table()).flat_map(|table| table.keys());
    for name in names {
        assert!(example.contains(name.as_str()), "the example does not show `{name}`");
    }
}

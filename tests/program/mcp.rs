//! `toolwright mcp` as a host starts it: stdout carries only the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::support::{Guard, Project};

pub struct Host {
    child: Guard,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Host {
    pub fn start(project: &Project, args: &[&str]) -> Self {
        let mut command = project.command(&[&["mcp"], args].concat());
        command.env("TOOLWRIGHT_LOG", "trace");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Guard(command.spawn().unwrap());
        let to = child.0.stdin.take().unwrap();
        let from = BufReader::new(child.0.stdout.take().unwrap());
        Self { child, to, from }
    }

    pub fn tell(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    /// The next line, which must be a message.
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.hear()
    }

    /// Waits until the program has failed by itself. Returns the log.
    pub fn ended_with_error(&mut self) -> String {
        let mut log = String::new();
        self.child.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        assert!(!self.child.0.wait().unwrap().success());
        log
    }

    /// Closes the pipe; the program must exit with 0 and print nothing more. Returns the log.
    pub fn close(mut self) -> String {
        drop(self.to);
        let mut rest = String::new();
        self.from.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(self.child.0.wait().unwrap().success());
        let mut log = String::new();
        self.child.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log
    }
}

#[test]
fn a_host_with_a_session_lists_and_calls() {
    let project = Project::with(&["note-search"]);
    let mut host = Host::start(&project, &["--store", "memory:"]);
    let client = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "host", "version": "1" } });
    let begun = host.ask(1, "initialize", client);
    assert_eq!(begun["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(begun["result"]["capabilities"]["tools"]["listChanged"], true);
    host.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let listed = host.ask(2, "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "note_search");
    let called =
        host.ask(3, "tools/call", json!({ "name": "note_search", "arguments": { "query": "geheim" } }));
    assert_eq!(called["result"]["structuredContent"], json!({ "query": "geheim" }));
    let refused =
        host.ask(4, "tools/call", json!({ "name": "note_search", "arguments": { "qury": "geheim" } }));
    assert_eq!(refused["result"]["isError"], true);
    // The MCP library must not log arguments either.
    let log = host.close();
    assert!(log.contains("note_search") && !log.contains("geheim"), "{log}");
}

#[test]
fn a_stateless_request_is_answered() {
    let project = Project::with(&["note-search"]);
    let mut host = Host::start(&project, &["--store", "memory:"]);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let arguments = json!({ "name": "note_search", "arguments": { "query": "x" }, "_meta": meta });
    let called = host.ask(1, "tools/call", arguments);
    assert_eq!(called["result"]["resultType"], "complete");
    assert_eq!(called["result"]["structuredContent"], json!({ "query": "x" }));
    host.close();
}

#[test]
fn the_server_and_the_schema_command_declare_the_same_tools() {
    let project = Project::reference();
    let view = project.run(&["schema", "--provider", "mcp", "--mode", "text", "--format", "json"]);
    let declared = view.expect_code(0).json()["tools"].clone();
    let mut host = Host::start(&project, &["--store", "memory:"]);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let listed = host.ask(1, "tools/list", json!({ "_meta": meta }))["result"]["tools"].clone();
    assert!(listed.as_array().unwrap().len() > 5);
    assert_eq!(listed, declared);
    host.close();
}

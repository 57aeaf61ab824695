//! A small MCP server on the standard streams, for tests. It offers the tools of a file and notifies about changes.
//! With a gate file, it waits until that file exists.
//! usage: mcp_fixture TOOLS_FILE [GATE_FILE]

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]
use std::io::{BufRead, Write, stdin};
use std::path::Path;
use std::{env, fs, process, thread, time::Duration};

use serde_json::{Value, json};

const LONG_NUMBER: &str = "123456789012345678901";

fn main() {
    let file = env::args().nth(1).unwrap();
    if let Some(gate) = env::args().nth(2) {
        wait_for(Path::new(&gate));
    }
    let offered = || fs::read_to_string(&file).unwrap();
    let mut listed = offered();
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = message.get("id") else { continue };
        let params = &message["params"];
        let mut response = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "result": {
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "fixture", "version": "1" },
            } }),
            "tools/list" => {
                listed = offered();
                let tools: Value = serde_json::from_str(&listed).unwrap();
                json!({ "result": { "tools": tools } })
            }
            "tools/call" => json!({ "result": call(params) }),
            "ping" => json!({ "result": {} }),
            other => json!({ "error": { "code": -32601, "message": format!("no {other}") } }),
        };
        if listed != offered() {
            println!("{}", json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        }
        response["jsonrpc"] = "2.0".into();
        response["id"] = id.clone();
        // A number that serde_json would round.
        println!("{}", response.to_string().replace("\"(a long number)\"", LONG_NUMBER));
    }
}

fn wait_for(gate: &Path) {
    let mut starts =
        fs::File::options().create(true).append(true).open(gate.with_extension("starts")).unwrap();
    writeln!(starts, "started").unwrap();
    while !gate.exists() {
        thread::sleep(Duration::from_millis(5));
    }
}

fn call(params: &Value) -> Value {
    match params["name"].as_str().unwrap_or_default() {
        "echo" => json!({ "content": [], "structuredContent": params["arguments"] }),
        "count" => {
            json!({ "content": [], "structuredContent": { "total": "(a long number)", "part": u64::MAX } })
        }
        "say" => json!({ "content": [{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }] }),
        "fail" => {
            json!({ "content": [{ "type": "text", "text": "There is no such page." }], "isError": true })
        }
        "environment" => {
            let names: Vec<String> = env::vars().map(|(name, _)| name).collect();
            json!({ "content": [], "structuredContent": { "names": names, "given": env::var("GIVEN").ok() } })
        }
        "slow" => {
            thread::sleep(Duration::from_secs(30));
            json!({ "content": [] })
        }
        "die" => process::exit(3),
        _ => json!({ "content": [], "isError": true }),
    }
}

//! A hostile MCP server on the standard streams, for tests: it sends more than anybody should read. It writes the
//! second file when it could send everything. usage: mcp_hostile line|call|pings|pages FILE

#![allow(clippy::disallowed_methods, reason = "test code reads the environment")]
#![allow(clippy::unwrap_used)]
use std::io::{BufRead, Write, stdin, stdout};
use std::{env, fs};

use serde_json::{Value, json};

/// Far more than any limit.
const FLOOD_BYTES: usize = 64 << 20;

fn main() {
    let (scenario, done) = (env::args().nth(1).unwrap(), env::args().nth(2).unwrap());
    let mut out = stdout().lock();
    for (number, line) in stdin().lock().lines().enumerate() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = message.get("id") else { continue };
        let result = match (message["method"].as_str().unwrap_or_default(), &*scenario) {
            ("initialize", _) => json!({
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "hostile", "version": "1" },
            }),
            ("tools/list", "line") | ("tools/call", "call") => {
                flood(&mut out, &done, br#"{"jsonrpc":"2.0","result":{"x":""#, &[b'x'; 1 << 16]);
                continue;
            }
            ("tools/list", "pings") => {
                flood(&mut out, &done, b"", b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n");
                continue;
            }
            ("tools/list", "pages") => json!({ "tools": [], "nextCursor": number.to_string() }),
            ("tools/list", _) => {
                json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })
            }
            _ => {
                let error = json!({ "code": -32601, "message": "unknown" });
                writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "error": error })).unwrap();
                continue;
            }
        };
        writeln!(out, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result })).unwrap();
    }
}

fn flood(out: &mut impl Write, done: &str, start: &[u8], piece: &[u8]) {
    out.write_all(start).unwrap();
    for _ in 0..FLOOD_BYTES / piece.len() {
        out.write_all(piece).unwrap();
    }
    out.flush().unwrap();
    fs::write(done, "done").unwrap();
}

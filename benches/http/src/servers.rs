//! The measured servers: how each is started, and the requests that it gets.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Result;
use crate::load::{self, Measurement};
use crate::workload::{self, Workload};

const SERVERS_CORE: &str = "0";
/// Replaced by a different number in every request.
pub const NUMBER_PLACEHOLDER: &str = "1000000001";

#[derive(Deserialize)]
pub struct ServerConfig {
    pub name: String,
    cmd: Vec<String>,
    protocol: String,
    /// Its working directory.
    #[serde(skip)]
    dir: Option<TempDir>,
}

/// A server that accepts connections.
pub struct RunningServer {
    config: ServerConfig,
    child: Child,
    port: u16,
    session: Option<String>,
}

/// Toolwright itself, and the servers of this crate.
pub fn built_in() -> Result<Vec<ServerConfig>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let binary =
        std::env::var_os("TOOLWRIGHT").map_or_else(|| root.join("target/release/toolwright"), PathBuf::from);
    if !binary.exists() {
        return Err(format!("{} is missing; run: cargo build --release", binary.display()).into());
    }
    let this = std::env::current_exe()?;
    let plain = |name: &str, command: &str, protocol: &str| ServerConfig {
        name: name.to_owned(),
        cmd: vec![this.display().to_string(), command.to_owned()],
        protocol: protocol.to_owned(),
        dir: None,
    };
    let mut all = vec![
        plain("axum", "serve-axum", "rest"),
        plain("plain MCP", "serve-mcp", "mcp 2025-11-25"),
        plain("plain MCP 2026", "serve-mcp", "mcp 2026-07-28"),
    ];
    for (name, protocol) in [
        ("rest", "toolwright"),
        ("rest, in a session", "toolwright session"),
        ("mcp, in a session", "mcp 2025-11-25 session"),
        ("mcp 2026", "mcp 2026-07-28"),
    ] {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("tools.json"), declared().to_string())?;
        std::fs::write(dir.path().join("toolwright.toml"), CONFIGURATION)?;
        let cmd = vec![binary.display().to_string(), "serve".to_owned()];
        all.push(ServerConfig { name: name.to_owned(), cmd, protocol: protocol.to_owned(), dir: Some(dir) });
    }
    Ok(all)
}

/// The benchmark never begins a turn, so the budget of one must be large.
const CONFIGURATION: &str =
    "[tools]\ndeclared = [\"tools.json\"]\n[limits.text]\nretrieval_calls = 1000000000\n";

fn declared() -> Value {
    let tool = |name: &str, effects: &str, answer: Value| {
        json!({
            "name": name, "description": "For the benchmark.", "type": "function", "handler": name,
            "parameters": workload::parameters(name), "sideEffects": effects, "idempotent": true,
            "implementation": { "type": "mock", "mock_response": answer },
        })
    };
    let tools =
        [tool("echo", "none", workload::message()), tool("kb_search", "read_only", workload::found())];
    json!({ "tools": tools })
}

pub fn from_file(path: &str) -> Result<Vec<ServerConfig>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// The port that a server must listen on.
pub fn port() -> Result<u16> {
    Ok(std::env::var("PORT")?.parse()?)
}

impl ServerConfig {
    pub fn start(self) -> Result<RunningServer> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("taskset");
        command.args(["-c", SERVERS_CORE]).args(&self.cmd).env("PORT", port.to_string());
        command.env("TOOLWRIGHT_LISTEN", format!("127.0.0.1:{port}"));
        if let Some(dir) = &self.dir {
            command.current_dir(dir.path());
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut running = RunningServer { config: self, child, port, session: None };
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline || running.child.try_wait()?.is_some() {
                return Err(format!("`{}` did not start: {:?}", running.name(), running.config.cmd).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        running.session = match running.config.protocol.as_str() {
            "toolwright session" => {
                let (_, body) = running.send("/v1/sessions", "", r#"{"mode":"text"}"#)?;
                serde_json::from_str::<Value>(&body)?["sessionId"].as_str().map(str::to_owned)
            }
            protocol if protocol.ends_with(" session") => Some(running.initialize()?),
            _ => None,
        };
        Ok(running)
    }
}

impl RunningServer {
    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn measure(&self, workload: &Workload, connections: usize, seconds: f64) -> Result<Measurement> {
        let request = self.request(workload)?;
        load::run(&load::Load {
            address: ([127, 0, 0, 1], self.port).into(),
            request: request.as_bytes(),
            expected: workload.expected,
            connections,
            seconds,
            server: self.child.id(),
        })
        .map_err(|error| format!("{} ({}): {error}", self.name(), workload.name).into())
    }

    pub fn resident_mb(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    }

    fn request(&self, workload: &Workload) -> Result<String> {
        let (tool, args) = (workload.tool, workload.args());
        let rest = format!("/v1/tools/{tool}/call");
        Ok(match self.config.protocol.split_once(' ') {
            None if self.config.protocol == "rest" => self.post(
                &rest,
                "",
                &json!({ "id": format!("call_{NUMBER_PLACEHOLDER}"), "args": args }).to_string(),
            ),
            None => self.post(
                &rest,
                "",
                &json!({ "executionId": format!("call_{NUMBER_PLACEHOLDER}"), "args": args }).to_string(),
            ),
            Some(("toolwright", _)) => {
                let id = format!("call_{NUMBER_PLACEHOLDER}");
                let body = json!({ "executionId": id, "sessionId": self.session, "args": args });
                self.post(&rest, "", &body.to_string())
            }
            Some(("mcp", version)) => {
                let version = version.trim_end_matches(" session");
                self.post("/mcp", &self.headers(version, tool), &call(version, tool, &args)?)
            }
            Some(_) => return Err(format!("unknown protocol: {}", self.config.protocol).into()),
        })
    }

    fn post(&self, path: &str, headers: &str, body: &str) -> String {
        let (port, length) = (self.port, body.len());
        format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{headers}\
             Content-Length: {length}\r\n\r\n{body}"
        )
    }

    /// Head and body of the response.
    fn send(&self, path: &str, headers: &str, body: &str) -> Result<(String, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(self.post(path, &format!("Connection: close\r\n{headers}"), body).as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        Ok((head.to_owned(), body.to_owned()))
    }

    fn initialize(&mut self) -> Result<String> {
        let version = "2025-11-25";
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" },
        });
        let first = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (head, _) = self.send("/mcp", &self.headers(version, ""), &first.to_string())?;
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let id = lines.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
        let id = id.ok_or("the server opened no session")?.1.to_owned();
        self.session = Some(id.clone());
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send("/mcp", &self.headers(version, ""), &initialized.to_string())?;
        Ok(id)
    }

    fn headers(&self, version: &str, tool: &str) -> String {
        let mut headers =
            format!("Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\n");
        if version >= "2026" {
            headers += &format!("Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
        }
        if let Some(session) = &self.session {
            headers += &format!("Mcp-Session-Id: {session}\r\n");
        }
        headers
    }
}

fn call(version: &str, tool: &str, args: &Value) -> Result<String> {
    let id: u64 = NUMBER_PLACEHOLDER.parse()?;
    let mut params = json!({ "name": tool, "arguments": args });
    if version >= "2026" {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    Ok(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string())
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The server under test: the release binary, in a project of its own.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::Result;

const LIMITS: &str = "max_connections = 8192\nmax_connections_per_peer = 4096\nmax_requests = 8192\n\
    max_requests_per_principal = 4096\nmax_streams_per_principal = 4096\n";

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    _project: TempDir,
}

impl Server {
    /// Starts a server whose agent asks this model.
    pub fn start(model: SocketAddr) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let binary = std::env::var_os("TOOLWRIGHT")
            .map_or_else(|| root.join("target/release/toolwright"), PathBuf::from);
        if !binary.exists() {
            return Err(format!("{} is missing; run: cargo build --release", binary.display()).into());
        }
        let project = tempfile::tempdir()?;
        let tool = json!({ "name": "echo", "description": "For the benchmark.", "type": "function",
            "handler": "echo", "parameters": { "type": "object" }, "sideEffects": "none", "idempotent": true,
            "implementation": { "type": "mock", "mock_response": {} } });
        std::fs::write(project.path().join("tools.json"), json!({ "tools": [tool] }).to_string())?;
        let configuration = format!(
            "[tools]\ndeclared = [\"tools.json\"]\n[agent]\nprovider = \"openai-chat\"\nmodel = \"scripted\"\n\
             base_url = \"http://{model}/v1\"\n[server]\n{LIMITS}"
        );
        std::fs::write(project.path().join("toolwright.toml"), configuration)?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", &address.to_string()]).current_dir(project.path());
        command.env_remove("TOOLWRIGHT_AGENT").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            if Instant::now() > deadline || child.try_wait()?.is_some() {
                return Err("the server does not start".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { child, address, _project: project })
    }

    /// Its memory now, in KB.
    pub fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }

    /// The processor time of all its threads, in nanoseconds.
    pub fn processor_time(&self) -> u64 {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let spent = threads.into_iter().flatten().flatten().filter_map(|thread| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        spent.sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! A server that is the project's own fixture, started as any other program.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_imports::{Import, ImportedTool, Pins, Server};

pub struct Workshop {
    pub dir: TempDir,
    pub pins: Pins,
}

/// A tool as the fixture offers it.
pub fn offer(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "annotations": { "readOnlyHint": true },
    })
}

/// Cargo builds it with the tests.
fn fixture() -> PathBuf {
    let path = env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples/mcp_fixture");
    assert!(path.exists(), "{} is missing: cargo build -p toolwright-imports --examples", path.display());
    path
}

impl Workshop {
    pub fn new(offers: &[Value]) -> Self {
        let workshop = Self { dir: TempDir::new().unwrap(), pins: Pins::default() };
        workshop.offer(offers);
        workshop
    }

    /// The server offers these from now on.
    pub fn offer(&self, offers: &[Value]) {
        fs::write(self.dir.path().join("offers.json"), json!(offers).to_string()).unwrap();
    }

    pub fn server(&self) -> Server {
        let command = [fixture(), self.dir.path().join("offers.json")].map(|path| path.display().to_string());
        settings(json!({ "name": "fix", "command": command }))
    }

    pub fn import(&self) -> Import {
        Import::new(self.server())
    }

    /// As `toolwright mcp pin` does.
    pub async fn accept(&mut self) {
        let definitions = self.import().definitions().await.unwrap();
        self.pins.accept("fix", definitions);
    }
}

pub fn settings(value: Value) -> Server {
    serde_json::from_value(value).unwrap()
}

/// What answers the tool of that name.
pub fn handler(import: &Import, pins: &Pins, tool: &str) -> ImportedTool {
    let wanted = format!("mcp:fix/{tool}");
    import.handlers(pins).find(|imported| imported.handler == wanted).unwrap()
}

/// A deadline that no answer misses.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

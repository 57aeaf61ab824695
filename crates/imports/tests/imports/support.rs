//! The `mcp_fixture` example as an imported server.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_imports::{Import, ImportedTool, Pins, ServerSettings};

pub struct TestServer {
    pub dir: TempDir,
    pub pins: Pins,
}

/// A tool definition of the fixture.
pub fn offer(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
        "annotations": { "readOnlyHint": true },
    })
}

/// The path of an example program, which cargo builds with the tests.
pub fn example(name: &str) -> PathBuf {
    let path = env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is missing: cargo build -p toolwright-imports --examples", path.display());
    path
}

impl TestServer {
    pub fn new(offers: &[Value]) -> Self {
        let server = Self { dir: TempDir::new().unwrap(), pins: Pins::default() };
        server.offer(offers);
        server
    }

    /// Replaces the tools that the server offers.
    pub fn offer(&self, offers: &[Value]) {
        fs::write(self.dir.path().join("offers.json"), json!(offers).to_string()).unwrap();
    }

    pub fn settings(&self) -> ServerSettings {
        let command = [example("mcp_fixture"), self.dir.path().join("offers.json")]
            .map(|path| path.display().to_string());
        settings(json!({ "name": "fix", "command": command }))
    }

    pub fn import(&self) -> Import {
        import(self.settings())
    }

    /// Accepts the current tools, like `toolwright mcp pin`.
    pub async fn accept(&mut self) {
        let definitions = self.import().definitions().await.unwrap();
        self.pins.accept("fix", definitions);
    }
}

/// An import with the variables of this process.
pub fn import(settings: ServerSettings) -> Import {
    Import::new(settings, |name| env::var_os(name))
}

pub fn settings(value: Value) -> ServerSettings {
    serde_json::from_value(value).unwrap()
}

/// The handler of a tool.
pub fn handler(import: &Import, pins: &Pins, tool: &str) -> ImportedTool {
    let wanted = format!("mcp:fix/{tool}@");
    import.handlers(pins).find(|imported| imported.handler.starts_with(&wanted)).unwrap()
}

/// A deadline that is never reached.
pub fn far_deadline() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

//! Toolsets made on the spot: a tool is a handler's text and a few fields.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use toolwright_contract::{Envelope, Mode, ToolSpec};
use toolwright_orchestrator::audit::{Audit, Entry};
use toolwright_orchestrator::capabilities::{Client, Delivery};
use toolwright_orchestrator::{Request, Runtime, RuntimeBuilder as Builder, Session};
use toolwright_registry::toolset::{Implementation, Module, Tool, Toolset};

/// Tools under construction, and the directory that their handlers lie in.
pub struct Bench {
    pub dir: TempDir,
    tools: Vec<Tool>,
}

impl Bench {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), tools: Vec::new() }
    }

    /// Adds a tool whose `handler.js` has this body of `execute`; `fields` are laid over the defaults.
    pub fn tool(self, id: &str, fields: Value, body: &str) -> Self {
        let text = format!(
            "import {{ ToolError, ErrorType }} from '../_core/error-types.js';\n\
             export async function execute({{ args, context }}) {{ {body} }}"
        );
        self.module(id, fields, &text)
    }

    /// Adds a tool with this whole `handler.js`.
    pub fn module(self, id: &str, fields: Value, text: &str) -> Self {
        let path = format!("{id}/handler.js");
        std::fs::create_dir_all(self.dir.path().join(id)).unwrap();
        std::fs::write(self.dir.path().join(&path), text).unwrap();
        let digest: [u8; 32] = Sha256::digest(text).into();
        let module = Module { path, sha256: toolwright_registry::hex(&digest), modules: Default::default() };
        self.add(id, fields, Implementation::Module(module))
    }

    pub fn add(mut self, id: &str, fields: Value, implementation: Implementation) -> Self {
        let spec = spec(id, fields);
        self.tools.push(Tool { spec, summary: format!("About {id}."), implementation });
        self
    }

    pub fn builder(self) -> (Builder, TempDir) {
        let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), self.tools);
        assert_eq!(errors, []);
        (Runtime::builder(Arc::new(toolset), self.dir.path()), self.dir)
    }

    pub fn runtime(self) -> (Runtime, TempDir) {
        let (builder, dir) = self.builder();
        (builder.build(), dir)
    }
}

fn spec(id: &str, fields: Value) -> ToolSpec {
    let mut spec = json!({
        "toolId": id, "version": "1.2.3", "description": "A tool.", "category": "action", "sideEffects": "writes",
        "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 1000, "jsonSchema": { "type": "object" }
    });
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

/// A call in a text session.
pub async fn call(runtime: &Runtime, tool: &str, args: Value) -> Value {
    shown(&runtime.execute(request(tool, args)).await)
}

pub fn request(tool: &str, args: Value) -> Request {
    let mut request = Request::new(tool, args, Arc::new(Session::new("client-1", Mode::Text)));
    request.execution_id = "call-1".to_owned();
    request
}

/// The envelope as its readers see it, without the one member that differs each time.
pub fn shown(envelope: &Envelope) -> Value {
    let mut value = serde_json::to_value(envelope).unwrap();
    let duration = value["meta"].as_object_mut().unwrap().remove("duration").unwrap();
    assert!(duration.is_u64(), "{duration}");
    value["meta"].as_object_mut().unwrap().remove("registryVersion").unwrap();
    value
}

/// What `meta` is for a tool of this bench.
pub fn meta(tool: &str) -> Value {
    json!({ "tool": tool, "toolVersion": "1.2.3", "executionId": "call-1" })
}

/// An INTERNAL failure as these tests see it.
pub fn internal(tool: &str, envelope: &Value) {
    assert_eq!(envelope["ok"], false, "{envelope}");
    assert_eq!(envelope["error"]["type"], "INTERNAL", "{envelope}");
    assert_eq!(envelope["meta"], meta(tool));
}

/// A client and an audit that remember.
#[derive(Debug, Default, Clone)]
pub struct Memory(pub Arc<Mutex<Vec<Value>>>);

impl Memory {
    pub fn seen(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

impl Client for Memory {
    fn send(&self, message: Value) -> Delivery {
        self.0.lock().unwrap().push(message);
        Box::pin(std::future::ready(Ok(())))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        self.0.lock().unwrap().push(json!({ "progress": fraction, "message": message }));
    }
}

impl Audit for Memory {
    fn log(&self, entry: &Entry<'_>) {
        let row = json!({ "client": entry.client_id, "tool": entry.tool, "version": entry.tool_version,
            "call": entry.execution_id, "event": entry.event, "data": entry.data });
        self.0.lock().unwrap().push(row);
    }
}

/// The reference toolset's handlers lie here.
pub fn reference_tools() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools"))
}

//! Toolsets for tests: a tool is the text of its handler and a few fields.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use toolwright_contract::{Envelope, Mode, ToolSpec};
use toolwright_orchestrator::capabilities::{Client, SendFuture};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::Backend;
use toolwright_orchestrator::{
    CallRequest, Engine, EngineOptions, Orchestrator, Runtime, RuntimeBuilder as Builder, SessionRef,
    ToolCall,
};
use toolwright_registry::toolset::{Implementation, Module, Tool, Toolset};

/// The tools of a toolset, and the directory of their handlers.
pub struct ToolsetBuilder {
    pub dir: TempDir,
    tools: Vec<Tool>,
}

impl ToolsetBuilder {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), tools: Vec::new() }
    }

    /// Adds a tool whose `handler.js` has this body of `execute`; `fields` replace the defaults.
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
        (Runtime::builder(Arc::new(toolset), self.dir.path()).engine(engine()), self.dir)
    }

    pub fn runtime(self) -> (Runtime, TempDir) {
        let (builder, dir) = self.builder();
        (builder.build(), dir)
    }
}

/// The harness owns `main`, so a constructor makes this program its own worker.
#[ctor::ctor(unsafe)]
fn be_worker() {
    toolwright_orchestrator::run_if_worker();
}

fn engine() -> Engine {
    let worker = Some(std::env::current_exe().unwrap());
    toolwright_orchestrator::engine(EngineOptions { worker, ..EngineOptions::default() })
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

/// A call in a new text session.
pub async fn call(runtime: &Runtime, tool: &str, args: Value) -> Value {
    let orchestrator = orchestrator(runtime);
    let request = request(&orchestrator, NewSession::new("client-1", Mode::Text), tool, args).await;
    to_json(&orchestrator.call(request).await)
}

pub fn orchestrator(runtime: &Runtime) -> Orchestrator {
    Orchestrator::builder(runtime.clone()).build().unwrap()
}

/// A call in a new stored session.
pub async fn request(
    orchestrator: &Orchestrator,
    session: NewSession,
    tool: &str,
    args: Value,
) -> CallRequest {
    let session = orchestrator.create_session(session).await.unwrap();
    let call = ToolCall { id: Some("call-1".to_owned()), tool: tool.to_owned(), args };
    CallRequest::new(SessionRef::Loaded(session), call)
}

/// The audit entries of handlers.
pub async fn handler_entries(orchestrator: &Orchestrator) -> Vec<Value> {
    let rows = orchestrator.store().audit_rows(0, 100).await.unwrap();
    let entries = rows.iter().map(|row| serde_json::from_str::<Value>(&row.entry).unwrap());
    entries.filter(|entry| entry["event"].as_str().unwrap().starts_with("handler:")).collect()
}

/// The envelope as JSON, without the members that differ between runs.
pub fn to_json(envelope: &Arc<Envelope>) -> Value {
    let mut value = serde_json::to_value(&**envelope).unwrap();
    let duration = value["meta"].as_object_mut().unwrap().remove("duration").unwrap();
    assert!(duration.is_u64(), "{duration}");
    value["meta"].as_object_mut().unwrap().remove("registryVersion").unwrap();
    value
}

/// The `meta` of a tool of this bench.
pub fn meta(tool: &str) -> Value {
    json!({ "tool": tool, "toolVersion": "1.2.3", "executionId": "call-1" })
}

/// Asserts that an envelope is an INTERNAL failure of a tool that ran, or could not be loaded.
pub fn assert_internal(tool: &str, envelope: &Value) {
    assert_eq!(envelope["ok"], false, "{envelope}");
    assert_eq!(envelope["error"]["type"], "INTERNAL", "{envelope}");
    assert_eq!(envelope["meta"], meta(tool));
}

/// A client that records its messages.
#[derive(Debug, Default, Clone)]
pub struct RecordingClient(pub Arc<Mutex<Vec<Value>>>);

impl RecordingClient {
    pub fn messages(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

impl Client for RecordingClient {
    fn send(&self, message: Value) -> SendFuture {
        self.0.lock().unwrap().push(message);
        Box::pin(std::future::ready(Ok(())))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        self.0.lock().unwrap().push(json!({ "progress": fraction, "message": message }));
    }
}

/// The directory of the reference toolset.
pub fn reference_tools() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools"))
}

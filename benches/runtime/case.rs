//! The calls that are measured: tool, arguments, and stubs of capabilities.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolwright::contract::{Failure, Mode, Success};
use toolwright::orchestrator::session::NewSession;
use toolwright::orchestrator::{
    CallRequest, Context, Engine, EngineOptions, Host, HostError, HostFuture, Level, Orchestrator, Runtime,
    ToolCall,
};
use toolwright::registry::declared;
use toolwright::registry::toolset::Toolset;

use crate::{Result, support};

const NATIVE: &str = r#"
tools:
  - name: native_noop
    description: Does nothing, in Rust.
    type: function
    category: utility
    sideEffects: none
    idempotent: true
    parameters:
      type: object
      additionalProperties: false
      required: [text]
      properties:
        text: { type: string, minLength: 1, maxLength: 200 }
    implementation: { type: builtin, handler: noop }
"#;

/// The tools of all cases.
pub struct Tools {
    toolset: Arc<Toolset>,
    base: PathBuf,
}

/// One kind of call.
pub struct Case {
    pub name: &'static str,
    tool: &'static str,
    args: Value,
    host: Option<Arc<dyn Host>>,
}

impl Tools {
    pub fn load() -> Result<Self> {
        let artifact = support::reference()?;
        let file = Path::new("native.yaml");
        let (tools, errors) = declared::read(file, NATIVE, &|name| name == "noop");
        let (toolset, taken) = Toolset::load(&artifact)?.with_declared(file, tools);
        match errors.first().or(taken.first()) {
            Some(error) => Err(error.to_string().into()),
            None => {
                let base = artifact.parent().unwrap_or(Path::new(".")).to_owned();
                Ok(Self { toolset: Arc::new(toolset), base })
            }
        }
    }

    pub fn orchestrator(&self) -> Result<Orchestrator> {
        let noop = |args: Value, _: Context| ready(Ok::<Success, Failure>(args.into()));
        let runtime = Runtime::builder(Arc::clone(&self.toolset), &self.base);
        Ok(Orchestrator::builder(runtime.native("noop", noop).engine(engine()?).build()).build()?)
    }
}

/// Its workers are this program.
pub fn engine() -> Result<Engine> {
    let worker = Some(std::env::current_exe()?);
    Ok(toolwright::orchestrator::engine(EngineOptions { worker, ..EngineOptions::default() }))
}

impl Case {
    pub fn all() -> Vec<Self> {
        let case = |name, tool, args, host| Self { name, tool, args, host };
        let text = json!({ "text": "hello" });
        let search =
            json!({ "query": "stage automation", "filters": { "type": "project", "tags": ["active"] } });
        let block = json!({ "duration_seconds": 60, "farewell_message": "That is enough for today." });
        vec![
            case("trivial handler.js", "trivial_echo", text.clone(), None),
            case("kb_search, 5 records", "kb_search", search, Some(Arc::new(Stub(records())))),
            case("ignore_user", "ignore_user", block, Some(Arc::new(Stub(Value::Null)))),
            case("native no-op", "native_noop", text, None),
        ]
    }

    /// A request in an ephemeral session, with the provider's id.
    pub fn request(&self) -> CallRequest {
        let id = Some("call_0123456789".to_owned());
        let call = ToolCall { id, tool: self.tool.to_owned(), args: self.args.clone() };
        let mut request = CallRequest::new(NewSession::new("bench", Mode::Text), call);
        request.host = self.host.clone();
        request
    }

    /// From request to envelope. A failed call is an error of the benchmark.
    pub async fn call(&self, orchestrator: &Orchestrator, request: CallRequest) -> Result<()> {
        match &orchestrator.call(request).await.outcome {
            Ok(_) => Ok(()),
            Err(failure) => Err(format!("{}: {failure:?}", self.name).into()),
        }
    }
}

/// Returns the same value for every capability.
struct Stub(Value);

impl Host for Stub {
    fn call(&self, _: &str, _: Vec<Value>) -> HostFuture {
        Box::pin(ready(Ok(self.0.clone())))
    }

    fn call_sync(&self, _: &str, _: Vec<Value>) -> std::result::Result<Value, HostError> {
        Ok(Value::Null)
    }

    fn console(&self, _: Level, _: String) {}
}

fn records() -> Value {
    let record = |at: usize| {
        json!({
            "id": format!("project:stage_automation_{at}"), "type": "project", "title": format!("Stage automation {at}"),
            "snippet": "Motion control for the revolving stage: cues, interlocks and the emergency stop are in one system.",
            "score": 0.95 - 0.1 * at as f64, "sourceType": "wiki", "lastUpdated": "2026-01-10T15:30:00Z",
            "url": format!("https://studio.example/projects/stage-automation-{at}"),
            "metadata": { "owner": "person:mira_okafor", "status": "active", "tags": ["automation", "active"] },
        })
    };
    (0..5).map(record).collect()
}

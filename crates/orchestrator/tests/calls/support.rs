//! An orchestrator with native tools that record their runs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_contract::{ClientEnvelope, Envelope, ErrorKind, Failure, Mode, Principal, Success};
use toolwright_orchestrator::clock::Clock;
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Memory, Store};
use toolwright_orchestrator::{CallRequest, Capacity, Context, Orchestrator, Runtime, ToolCall};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

/// The effects of a fixture's tools.
#[derive(Debug, Default)]
pub struct Done {
    pub runs: AtomicUsize,
    /// The arguments of each run, in order.
    pub args: Mutex<Vec<Value>>,
    /// How many run now, and the most at one time.
    pub now: AtomicUsize,
    pub most: AtomicUsize,
}

impl Done {
    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub fn args(&self) -> Vec<Value> {
        self.args.lock().unwrap().clone()
    }
}

/// An orchestrator, what its tools have done, and the semaphore that `wait` acquires.
pub struct Fixture {
    pub orchestrator: Orchestrator,
    pub done: Arc<Done>,
    pub open: Arc<Semaphore>,
    pub clock: Clock,
}

pub struct Setup {
    pub tools: Vec<(String, Value)>,
    pub policy: Policy,
    /// How many tasks run at a time.
    pub max_background: Option<usize>,
}

impl Setup {
    pub fn new() -> Self {
        Self { tools: Vec::new(), policy: Policy::default(), max_background: None }
    }

    /// Adds a tool that behaves as its arguments say; `fields` replace the defaults.
    pub fn tool(mut self, id: &str, fields: Value) -> Self {
        self.tools.push((id.to_owned(), fields));
        self
    }

    pub fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    pub fn build(self) -> Fixture {
        self.build_on(Store::Memory(Memory::default()))
    }

    pub fn build_on(self, store: Store) -> Fixture {
        let (done, open) = (Arc::new(Done::default()), Arc::new(Semaphore::new(0)));
        let tools = self.tools.iter().map(|(id, fields)| tool(id, fields)).collect();
        let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
        assert_eq!(errors, []);
        let (noted, gate) = (Arc::clone(&done), Arc::clone(&open));
        let runtime = Runtime::builder(Arc::new(toolset), ".")
            .native("work", move |args, context| work(args, context, Arc::clone(&noted), Arc::clone(&gate)))
            .build();
        let clock = Clock::manual(1_000_000);
        let builder = Orchestrator::builder(runtime).store(store).policy(self.policy).clock(clock.clone());
        let capacity = Capacity::default();
        let max_background = self.max_background.unwrap_or(capacity.max_background);
        let orchestrator = builder.capacity(Capacity { max_background, ..capacity }).build().unwrap();
        Fixture { orchestrator, done, open, clock }
    }
}

/// A tool whose handler is the native function `work`.
pub fn tool(id: &str, fields: &Value) -> Tool {
    let mut spec = json!({
        "toolId": id, "version": "1.0.0", "description": "Does work.", "category": "action", "sideEffects": "writes",
        "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 1000, "jsonSchema": { "type": "object" }
    });
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let spec = serde_json::from_value(spec).unwrap();
    Tool { spec, summary: "Does work.".to_owned(), implementation: Implementation::Native("work".to_owned()) }
}

/// The fields of a retrieval tool.
pub fn retrieval() -> Value {
    json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true })
}

/// Does what its arguments say: `wait`, `progress`, `fail`, `fail_times`, `intents`, `call`.
async fn work(
    args: Value,
    context: Context,
    done: Arc<Done>,
    open: Arc<Semaphore>,
) -> Result<Success, Failure> {
    let run = done.runs.fetch_add(1, Ordering::SeqCst) + 1;
    done.args.lock().unwrap().push(args.clone());
    let now = done.now.fetch_add(1, Ordering::SeqCst) + 1;
    done.most.fetch_max(now, Ordering::SeqCst);
    if args["wait"] == true {
        open.acquire().await.unwrap().forget();
    } else {
        tokio::task::yield_now().await;
    }
    done.now.fetch_sub(1, Ordering::SeqCst);
    if let Some(fraction) = args["progress"].as_f64() {
        context.progress(fraction, Some("the last report"));
    }
    if let Some(name) = args["call"].as_str() {
        let envelope = context.call_tool(name, args["with"].clone()).await.unwrap();
        return Ok(serde_json::to_value(&*envelope).unwrap().into());
    }
    let passing = args["fail_times"].as_u64().is_some_and(|times| run as u64 <= times);
    let fail = if passing { Some("TRANSIENT") } else { args["fail"].as_str() };
    if let Some(kind) = fail {
        let failure =
            Failure::new(ErrorKind::from_word(kind).unwrap(), format!("failed with {}", args["password"]));
        return Err(Failure { retryable: args["final"] != true, ..failure });
    }
    let intents = args["intents"].as_array().cloned().unwrap_or_default();
    Ok(Success { data: json!({ "run": run, "call": context.execution_id() }).into(), intents })
}

impl Fixture {
    pub async fn session(&self, mode: Mode) -> String {
        self.session_of("client", mode, &[]).await
    }

    pub async fn session_of(&self, client: &str, mode: Mode, roles: &[&str]) -> String {
        let mut new = NewSession::new(client, mode);
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        new.principal = Principal { id: client.to_owned(), org: Some("studio".to_owned()), roles };
        self.orchestrator.create_session(new).await.unwrap().id.clone()
    }

    pub async fn call(&self, session: &str, id: &str, tool: &str, args: Value) -> Value {
        to_json(&self.orchestrator.call(CallRequest::new(session, call(id, tool, args))).await)
    }

    /// Calls and returns the error's type, or `ok`.
    pub async fn outcome(&self, session: &str, id: &str, tool: &str, args: Value) -> String {
        let envelope = self.call(session, id, tool, args).await;
        envelope["error"]["type"].as_str().unwrap_or("ok").to_owned()
    }
}

/// The calls of one model message.
pub async fn message(orchestrator: &Orchestrator, session: &str, calls: Vec<ToolCall>) -> Vec<Arc<Envelope>> {
    let loaded = orchestrator.session(session).await.unwrap().unwrap();
    let requests = calls.into_iter().enumerate();
    let requests = requests.map(|(position, call)| CallRequest::new(session, call).position(position));
    orchestrator.calls(&loaded, requests.collect(), |_, _| {}).await
}

pub fn call(id: &str, tool: &str, args: Value) -> ToolCall {
    ToolCall { id: (!id.is_empty()).then(|| id.to_owned()), tool: tool.to_owned(), args }
}

/// The envelope as a client receives it.
pub fn to_json(envelope: &Arc<Envelope>) -> Value {
    serde_json::to_value(ClientEnvelope(envelope)).unwrap()
}

/// Waits until a condition is true.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

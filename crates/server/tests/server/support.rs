//! A served toolset of native tools that do as their arguments say.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use toolwright_contract::{Failure, Success};
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::{Builder, Context, Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};
use toolwright_server::auth::keys::{KeyFile, NewKey};
use toolwright_server::auth::{Auth, JwtOptions};
use toolwright_server::{Options, Server};

use super::client::Client;

/// A running server, what its tools did, and the gate that slow ones wait at.
pub struct Served {
    pub client: Client,
    pub orchestrator: Orchestrator,
    pub runs: Arc<AtomicUsize>,
    pub open: Arc<Semaphore>,
    pub keys: KeyFile,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<bool>,
    _dir: TempDir,
}

impl Served {
    pub async fn start() -> Self {
        Self::with(|_| {}, None).await
    }

    pub async fn with(change: impl FnOnce(&mut Options), jwt: Option<JwtOptions>) -> Self {
        let (runs, open) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let orchestrator = orchestrator(&runs, &open);
        Self::set_up(orchestrator, runs, open, change, jwt).await
    }

    /// With an orchestrator that was set up otherwise.
    pub async fn of(orchestrator: Orchestrator, runs: Arc<AtomicUsize>, open: Arc<Semaphore>) -> Self {
        Self::set_up(orchestrator, runs, open, |_| {}, None).await
    }

    async fn set_up(
        orchestrator: Orchestrator,
        runs: Arc<AtomicUsize>,
        open: Arc<Semaphore>,
        change: impl FnOnce(&mut Options),
        jwt: Option<JwtOptions>,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = || KeyFile::new(dir.path().join("keys.json"));
        let mut options = Options { listen: "127.0.0.1:0".parse().unwrap(), ..Options::default() };
        change(&mut options);
        let server = Server::bind(orchestrator.clone(), Auth::new(keys(), jwt), options).await.unwrap();
        let client = Client::new(server.address());
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { client, orchestrator, runs, open, keys: keys(), stop: Some(stop), running, _dir: dir }
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Handlers at this moment: each holds the gate, besides this and the toolset.
    pub fn at_work(&self) -> usize {
        Arc::strong_count(&self.open) - 2
    }

    /// A client with a key of its own.
    pub fn client_of(&self, name: &str, roles: &[&str]) -> Client {
        self.client.with("authorization", format!("Bearer {}", self.key_of(name, roles)))
    }

    pub fn key_of(&self, name: &str, roles: &[&str]) -> String {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let org = Some("studio".to_owned());
        let (_, token) =
            self.keys.create(NewKey { name: name.to_owned(), org, roles, expires_at: None }).unwrap();
        token
    }

    pub async fn session(&self, mode: &str) -> String {
        let session = self.client.post("/v1/sessions", json!({ "mode": mode })).await.expect(201);
        session["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn tell_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Whether everything was finished in time.
    pub async fn stopped(self) -> bool {
        tokio::time::timeout(Duration::from_secs(30), self.running).await.unwrap().unwrap()
    }
}

pub fn orchestrator(runs: &Arc<AtomicUsize>, open: &Arc<Semaphore>) -> Orchestrator {
    orchestrator_with(runs, open, |builder| builder)
}

pub fn orchestrator_with(
    runs: &Arc<AtomicUsize>,
    open: &Arc<Semaphore>,
    change: impl FnOnce(Builder) -> Builder,
) -> Orchestrator {
    let reads = json!({ "category": "utility", "sideEffects": "none", "idempotent": true });
    let asks = json!({ "requiresConfirmation": { "when": "true", "preview": "Send to {{to}}?" }, "jsonSchema": {
        "type": "object", "additionalProperties": false, "required": ["to"],
        "properties": { "to": { "type": "string" }, "password": { "type": "string", "writeOnly": true } } } });
    let staff = json!({ "permissions": { "roles": ["staff"] } });
    let echo = json!({ "category": "utility", "sideEffects": "none", "idempotent": true, "jsonSchema": { "type": "object",
        "additionalProperties": false, "required": ["message"], "properties": { "message": { "type": "string" },
        "times": { "type": "integer", "default": 1 } } } });
    let retrieval = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let tools = [
        ("echo", echo),
        ("look", retrieval),
        ("read", reads),
        ("write", json!({})),
        ("send", asks),
        ("of_staff", staff),
    ];
    let tools = tools.iter().map(|(id, fields)| tool(id, fields)).collect();
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    let (runs, open) = (Arc::clone(runs), Arc::clone(open));
    let runtime = Runtime::builder(Arc::new(toolset), ".")
        .native("work", move |args, context| work(args, context, Arc::clone(&runs), Arc::clone(&open)))
        .build();
    let policy = Policy { may_remember: true, ..Policy::default() };
    change(Orchestrator::builder(runtime).policy(policy)).build().unwrap()
}

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

/// Echoes its arguments; `progress`, `wait`, `send`, `call`, `intents` first.
async fn work(
    args: Value,
    context: Context,
    runs: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
) -> Result<Success, Failure> {
    let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
    for fraction in args["progress"].as_array().into_iter().flatten() {
        context.progress(fraction.as_f64().unwrap(), Some("working"));
    }
    if args["wait"] == true {
        open.acquire().await.unwrap().forget();
    }
    if args["send"].is_object() {
        context.call("messaging.send", vec![args["send"].clone()]).await.unwrap();
    }
    if let Some(name) = args["call"].as_str() {
        let envelope = context.call_tool(name, args["with"].clone()).await.unwrap();
        return Ok(serde_json::to_value(&envelope).unwrap().into());
    }
    let intents = args["intents"].as_array().cloned().unwrap_or_default();
    Ok(Success { data: json!({ "run": run, "args": args }).into(), intents })
}

/// Waits until something is so.
pub async fn until(mut so: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !so() {
        assert!(started.elapsed() < Duration::from_secs(30), "it never was so");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

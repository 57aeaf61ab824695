//! A running server with native tools whose arguments say what they do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use toolwright_contract::{ErrorKind, Failure, Principal, Success};
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::store::Store;
use toolwright_orchestrator::{Builder, Context, Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};
use toolwright_server::auth::keys::KeyFile;
use toolwright_server::auth::{Auth, JwtOptions, LocalKey};
use toolwright_server::{Options, Server};

use super::client::Client;

/// A running server, the number of handler runs, and the permits that waiting handlers need.
pub struct TestServer {
    pub client: Client,
    pub orchestrator: Orchestrator,
    pub runs: Arc<AtomicUsize>,
    pub permits: Arc<Semaphore>,
    pub keys: KeyFile,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<bool>,
    _dir: TempDir,
}

impl TestServer {
    pub async fn start() -> Self {
        Self::with(|_| {}, None).await
    }

    pub async fn with(change: impl FnOnce(&mut Options), jwt: Option<JwtOptions>) -> Self {
        let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let orchestrator = orchestrator(&runs, &permits);
        Self::set_up(orchestrator, runs, permits, change, jwt).await
    }

    /// With another store.
    pub async fn with_store(store: Store) -> Self {
        let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let orchestrator = orchestrator_with(&runs, &permits, |builder| builder.store(store));
        Self::with_orchestrator(orchestrator, runs, permits).await
    }

    /// With a tool that needs a role and approval, `staff_send`.
    pub async fn with_confirmed_staff_tool() -> Self {
        let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let fields = json!({ "permissions": { "roles": ["staff"] }, "requiresConfirmation": true });
        let orchestrator =
            orchestrator_of(vec![tool("staff_send", &fields)], &runs, &permits, |builder| builder);
        Self::set_up(orchestrator, runs, permits, |_| {}, None).await
    }

    /// With a tool that runs in the background, `later`.
    pub async fn with_background_tool() -> Self {
        let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let later = tool("later", &json!({ "execution": "background" }));
        let orchestrator = orchestrator_of(vec![later], &runs, &permits, |builder| builder);
        Self::set_up(orchestrator, runs, permits, |_| {}, None).await
    }

    /// That accepts this key of local programs.
    pub async fn with_local_key(key: LocalKey) -> Self {
        let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let orchestrator = orchestrator(&runs, &permits);
        let auth = |auth: Auth| auth.with_local_key(key);
        Self::set_up_with(orchestrator, runs, permits, |_| {}, None, auth).await
    }

    /// With another orchestrator.
    pub async fn with_orchestrator(
        orchestrator: Orchestrator,
        runs: Arc<AtomicUsize>,
        permits: Arc<Semaphore>,
    ) -> Self {
        Self::set_up(orchestrator, runs, permits, |_| {}, None).await
    }

    pub async fn set_up(
        orchestrator: Orchestrator,
        runs: Arc<AtomicUsize>,
        permits: Arc<Semaphore>,
        change: impl FnOnce(&mut Options),
        jwt: Option<JwtOptions>,
    ) -> Self {
        Self::set_up_with(orchestrator, runs, permits, change, jwt, |auth| auth).await
    }

    async fn set_up_with(
        orchestrator: Orchestrator,
        runs: Arc<AtomicUsize>,
        permits: Arc<Semaphore>,
        change: impl FnOnce(&mut Options),
        jwt: Option<JwtOptions>,
        auth: impl FnOnce(Auth) -> Auth,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = || KeyFile::new(dir.path().join("keys.json"));
        let mut options = Options { listen: "127.0.0.1:0".parse().unwrap(), ..Options::default() };
        change(&mut options);
        let server = Server::bind(orchestrator.clone(), auth(Auth::new(keys(), jwt)), options).await.unwrap();
        let client = Client::new(server.address());
        let (stop, stop_requested) = oneshot::channel();
        let running = tokio::spawn(server.run(async {
            let _ = stop_requested.await;
        }));
        Self { client, orchestrator, runs, permits, keys: keys(), stop: Some(stop), running, _dir: dir }
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    /// Handlers that run now: each holds a reference, as do this struct and the toolset.
    pub fn running_handlers(&self) -> usize {
        Arc::strong_count(&self.permits) - 2
    }

    /// A client with a new key.
    pub fn client_with_key(&self, name: &str, roles: &[&str]) -> Client {
        self.client.with("authorization", format!("Bearer {}", self.create_key(name, roles)))
    }

    pub fn create_key(&self, name: &str, roles: &[&str]) -> String {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let org = Some("studio".to_owned());
        let (_, token) = self.keys.create(Principal { id: name.to_owned(), org, roles }, None).unwrap();
        token
    }

    pub async fn session(&self, mode: &str) -> String {
        let session = self.client.post("/v1/sessions", json!({ "mode": mode })).await.expect(201);
        session["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn request_shutdown(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Whether everything finished in time.
    pub async fn wait_for_shutdown(self) -> bool {
        tokio::time::timeout(Duration::from_secs(30), self.running).await.unwrap().unwrap()
    }
}

pub fn orchestrator(runs: &Arc<AtomicUsize>, permits: &Arc<Semaphore>) -> Orchestrator {
    orchestrator_with(runs, permits, |builder| builder)
}

pub fn orchestrator_with(
    runs: &Arc<AtomicUsize>,
    permits: &Arc<Semaphore>,
    change: impl FnOnce(Builder) -> Builder,
) -> Orchestrator {
    let reads = json!({ "category": "utility", "sideEffects": "none", "idempotent": true });
    let confirmed = json!({ "requiresConfirmation": { "when": "true", "preview": "Send to {{to}}?" }, "jsonSchema": {
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
        ("send", confirmed),
        ("staff_only", staff),
    ];
    let tools = tools.iter().map(|(id, fields)| tool(id, fields)).collect();
    orchestrator_of(tools, runs, permits, change)
}

pub fn orchestrator_of(
    tools: Vec<Tool>,
    runs: &Arc<AtomicUsize>,
    permits: &Arc<Semaphore>,
    change: impl FnOnce(Builder) -> Builder,
) -> Orchestrator {
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    let (runs, permits) = (Arc::clone(runs), Arc::clone(permits));
    let runtime = Runtime::builder(Arc::new(toolset), ".")
        .native("work", move |args, context| work(args, context, Arc::clone(&runs), Arc::clone(&permits)))
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

/// Follows `progress`, `wait`, `send`, `call` and `intents` in its arguments, then echoes them.
async fn work(
    args: Value,
    context: Context,
    runs: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
) -> Result<Success, Failure> {
    let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
    for fraction in args["progress"].as_array().into_iter().flatten() {
        context.progress(fraction.as_f64().unwrap(), Some("working"));
    }
    if args["wait"] == true {
        permits.acquire().await.unwrap().forget();
    }
    if args["send"].is_object() {
        let sent = context.call("messaging.send", vec![args["send"].clone()]).await;
        sent.map_err(|error| Failure::new(ErrorKind::Transient, error.message))?;
    }
    if let Some(name) = args["call"].as_str() {
        let envelope = context.call_tool(name, args["with"].clone()).await.unwrap();
        return Ok(serde_json::to_value(&envelope).unwrap().into());
    }
    let intents = args["intents"].as_array().cloned().unwrap_or_default();
    Ok(Success { data: json!({ "run": run, "args": args }).into(), intents })
}

/// Waits until the condition holds.
pub async fn wait_until(mut condition: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(30), "the condition did not hold within 30 s");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

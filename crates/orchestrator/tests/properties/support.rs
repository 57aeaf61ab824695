//! An orchestrator whose handlers add to the history.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_contract::{ErrorKind, Failure, Mode, Success};
use toolwright_orchestrator::clock::Clock;
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::Store;
use toolwright_orchestrator::{Context, Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::history::{Event, History};
use crate::steps::SESSIONS;

/// Retrieval calls of a turn.
pub const BUDGET: u32 = 2;
/// How long a confirmation request waits.
pub const CONFIRMATION_MS: i64 = 1000;

pub struct Fixture {
    pub orchestrator: Orchestrator,
    pub history: Arc<History>,
    pub clock: Clock,
    /// The semaphore that waiting handlers acquire.
    pub gate: Arc<Semaphore>,
    work: Arc<Work>,
}

/// Shared by all handlers.
struct Work {
    history: Arc<History>,
    gate: Arc<Semaphore>,
    runs: AtomicU64,
    running: AtomicU64,
}

/// Counts a running handler until it is dropped.
struct RunningGuard<'a>(&'a AtomicU64);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub fn session(number: usize) -> String {
    format!("s{number}")
}

impl Fixture {
    pub async fn new(store: Store) -> Self {
        let retrieval = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
        let tools = vec![
            tool("note", &json!({})),
            tool("redo", &json!({ "idempotent": true })),
            tool("find", &retrieval),
            tool("pay", &json!({ "requiresConfirmation": true })),
        ];
        let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
        assert_eq!(errors, []);
        let history = Arc::new(History::default());
        let gate = Arc::new(Semaphore::new(0));
        let (runs, running) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = Arc::new(Work { history: Arc::clone(&history), gate: Arc::clone(&gate), runs, running });
        let shared = Arc::clone(&work);
        let runtime = Runtime::builder(Arc::new(toolset), ".")
            .native("work", move |args, context| run(args, context, Arc::clone(&shared)))
            .build();
        let mut policy = Policy { confirmation_ms: CONFIRMATION_MS, ..Policy::default() };
        policy.text.limits.retrieval_calls = BUDGET;
        let clock = Clock::manual(1_000_000);
        let builder = Orchestrator::builder(runtime).store(store).policy(policy);
        let orchestrator = builder.clock(clock.clone()).build().unwrap();
        for number in 0..SESSIONS {
            // Handlers know their session by its client.
            let mut new = NewSession::new(session(number), Mode::Text);
            new.id = Some(session(number));
            orchestrator.create_session(new).await.unwrap();
        }
        Self { orchestrator, history, clock, gate, work }
    }

    /// Whether no handler runs.
    pub fn is_idle(&self) -> bool {
        self.work.running.load(Ordering::SeqCst) == 0
    }
}

fn tool(id: &str, fields: &Value) -> Tool {
    let mut spec = json!({
        "toolId": id, "version": "1.0.0", "description": "Does work.", "category": "action", "sideEffects": "writes",
        "idempotent": false, "requiresConfirmation": false, "allowedModes": ["text"], "latencyBudgetMs": 3000,
        "jsonSchema": { "type": "object" }
    });
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    let spec = serde_json::from_value(spec).unwrap();
    Tool { spec, summary: "Does work.".to_owned(), implementation: Implementation::Native("work".to_owned()) }
}

async fn run(args: Value, context: Context, work: Arc<Work>) -> Result<Success, Failure> {
    work.running.fetch_add(1, Ordering::SeqCst);
    let _running = RunningGuard(&work.running);
    let run = work.runs.fetch_add(1, Ordering::SeqCst);
    work.history.add(Event::Ran {
        session: context.client_id()[1..].parse().unwrap(),
        id: context.execution_id().to_owned(),
        tool: context.tool().tool_id.clone(),
        args: args.clone(),
        run,
    });
    if args["waits"] == true {
        work.gate.acquire().await.unwrap().forget();
    } else {
        tokio::task::yield_now().await;
    }
    if args["fails"] == true {
        return Err(Failure::new(ErrorKind::Permanent, format!("it failed in run {run}")));
    }
    Ok(json!({ "run": run }).into())
}

//! The orchestrator around a no-op handler, for a profiler: `call_overhead read|write memory|sqlite CALLS [CALLERS]`.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]

use std::error::Error;
use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_contract::{Failure, Mode, Success};
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Memory, Sqlite, Store, sqlite};
use toolwright_orchestrator::{CallRequest, Context, Orchestrator, Runtime, ToolCall};
use toolwright_registry::declared;
use toolwright_registry::toolset::Toolset;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| args.get(at).map_or(default.to_owned(), Clone::clone);
    let (tool, store) = (word(0, "write"), word(1, "memory"));
    let (calls, callers): (usize, usize) = (word(2, "10000").parse()?, word(3, "1").parse()?);
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    tokio.block_on(measure(&tool, &store, calls, callers))
}

#[allow(clippy::print_stdout, reason = "its one result")]
async fn measure(tool: &str, store: &str, calls: usize, callers: usize) -> Result<()> {
    let dir = tempfile::tempdir_in(".")?;
    let store = match store {
        "sqlite" => Store::Sqlite(Sqlite::open(&dir.path().join("state.db"), sqlite::Options::default())?),
        _ => Store::Memory(Memory::default()),
    };
    let mut policy = Policy::default();
    policy.text.limits.retrieval_calls = u32::MAX;
    let orchestrator = Orchestrator::builder(runtime()?).store(store).policy(policy).build()?;
    let mut tasks = Vec::new();
    let started = Instant::now();
    for caller in 0..callers {
        let new = NewSession::new(format!("client {caller}"), Mode::Text);
        let session = orchestrator.create_session(new).await?.id.clone();
        tasks.push(tokio::spawn(call(orchestrator.clone(), session, tool.to_owned(), calls / callers)));
    }
    let mut taken = Vec::new();
    for task in tasks {
        taken.extend(task.await??);
    }
    let rate = taken.len() as f64 / started.elapsed().as_secs_f64();
    taken.sort_unstable();
    println!("{} calls, {rate:.0}/s, p50 {:?}", taken.len(), taken[taken.len() / 2]);
    Ok(())
}

async fn call(
    orchestrator: Orchestrator,
    session: String,
    tool: String,
    calls: usize,
) -> Result<Vec<Duration>> {
    let mut taken = Vec::with_capacity(calls);
    for number in 0..calls {
        let id = Some(format!("call_{number}"));
        let call = ToolCall { id, tool: tool.clone(), args: json!({ "text": "hello" }) };
        let started = Instant::now();
        let envelope = orchestrator.call(CallRequest::new(&session, call)).await;
        taken.push(started.elapsed());
        if !envelope.is_ok() {
            return Err(format!("{envelope:?}").into());
        }
    }
    Ok(taken)
}

fn runtime() -> Result<Runtime> {
    let tool = |name: &str, effects: &str| {
        json!({ "name": name, "description": "Does nothing.", "type": "function", "sideEffects": effects,
            "idempotent": effects != "writes",
            "parameters": { "type": "object", "additionalProperties": false, "required": ["text"],
                "properties": { "text": { "type": "string", "minLength": 1, "maxLength": 200 } } },
            "implementation": { "type": "builtin", "handler": "noop" } })
    };
    let tools = json!({ "tools": [tool("read", "read_only"), tool("write", "writes")] });
    let file = Path::new("tools.json");
    let (tools, errors) = declared::read(file, &tools.to_string(), &|_| true);
    if let Some(error) = errors.first() {
        return Err(error.to_string().into());
    }
    let toolset = Toolset::empty().with_declared(file, tools).0;
    let noop = |args: Value, _: Context| ready(Ok::<Success, Failure>(args.into()));
    Ok(Runtime::builder(Arc::new(toolset), ".").native("noop", noop).build())
}

//! The orchestrator around a no-op native handler: what a call costs with the store in memory, how many durable calls
//! SQLite takes, and whether the cost stays flat as tools and sessions grow.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright::contract::{Failure, Mode, Success};
use toolwright::orchestrator::policy::Policy;
use toolwright::orchestrator::session::NewSession;
use toolwright::orchestrator::store::{Memory, Sqlite, Store, sqlite};
use toolwright::orchestrator::{CallRequest, Context, Orchestrator, Runtime, ToolCall};
use toolwright::registry::declared;
use toolwright::registry::toolset::Toolset;

use crate::clock::{cpu, micros};
use crate::report::{Column, Goal, Row, Sample, Section};
use crate::{Options, Result};

const COLUMNS: &[Column] = &[
    Column { key: "p50", title: "p50", unit: "µs", digits: 2 },
    Column { key: "p99", title: "p99", unit: "µs", digits: 1 },
    Column { key: "cpu", title: "CPU a call", unit: "µs", digits: 2 },
    Column { key: "rate", title: "calls/s", unit: "", digits: 0 },
];

const GOALS: &[Goal] = &[
    Goal { row: "memory, a read", key: "p50", most: 5.0 },
    Goal { row: "memory, a write", key: "p50", most: 5.0 },
];

/// Name, tools, sessions, callers, tool, store.
const CASES: &[(&str, usize, usize, usize, &str, &str)] = &[
    ("memory, a read", 100, 1, 1, "read", "memory"),
    ("memory, a write", 100, 1, 1, "write", "memory"),
    ("memory, a read, 10,000 tools", 10_000, 1, 1, "read", "memory"),
    ("memory, a read, 10,000 sessions", 100, 10_000, 1, "read", "memory"),
    ("SQLite, a read", 100, 1, 1, "read", "sqlite"),
    ("SQLite, a write", 100, 1, 1, "write", "sqlite"),
    ("SQLite, writes, 64 callers", 100, 64, 64, "write", "sqlite"),
];

pub fn run(options: &Options) -> Result<Section> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows: Vec<Row> = CASES.iter().map(|case| Row::new(case.0)).collect();
    for _ in 0..options.rounds {
        for (row, case) in rows.iter_mut().zip(CASES) {
            row.samples.push(runtime.block_on(measure(case, options.time))?);
        }
    }
    Ok(Section { name: "orchestrator", rounds: options.rounds, columns: COLUMNS, rows, goals: GOALS })
}

async fn measure(case: &(&str, usize, usize, usize, &str, &str), time: Duration) -> Result<Sample> {
    let (_, tools, sessions, callers, tool, store) = *case;
    let dir = tempfile::tempdir()?;
    let store = match store {
        "sqlite" => Store::Sqlite(Sqlite::open(&dir.path().join("state.db"), sqlite::Options::default())?),
        _ => Store::Memory(Memory::default()),
    };
    let mut policy = Policy::default();
    policy.text.limits.retrieval_calls = u32::MAX;
    let orchestrator = Orchestrator::builder(toolset(tools)?).store(store).policy(policy).build()?;
    let mut ids = Vec::with_capacity(sessions);
    for number in 0..sessions {
        let new = NewSession::new(format!("client {number}"), Mode::Text);
        ids.push(orchestrator.create_session(new).await?.id.clone());
    }
    let (ids, began, started) = (Arc::new(ids), cpu(), Instant::now());
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (orchestrator, ids) = (orchestrator.clone(), Arc::clone(&ids));
            tokio::spawn(call_until(orchestrator, ids, caller, tool.to_owned(), started + time))
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let (used, took) = (cpu() - began, started.elapsed());
    latencies.sort_unstable();
    let count = latencies.len().max(1);
    let at = |share: f64| micros(latencies.get((count as f64 * share) as usize).copied().unwrap_or_default());
    let sample = json!({ "p50": at(0.5), "p99": at(0.99), "cpu": micros(used) / count as f64,
        "rate": count as f64 / took.as_secs_f64() });
    sample.as_object().cloned().ok_or_else(|| "no sample".into())
}

async fn call_until(
    orchestrator: Orchestrator,
    sessions: Arc<Vec<String>>,
    caller: usize,
    tool: String,
    end: Instant,
) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(100_000);
    let mut number = caller;
    while Instant::now() < end {
        let session = &sessions[number % sessions.len()];
        number += 64;
        let id = Some(format!("call_{caller}_{number}"));
        let call = ToolCall { id, tool: tool.clone(), args: json!({ "text": "hello" }) };
        let started = Instant::now();
        let envelope = orchestrator.call(CallRequest::new(session, call)).await;
        latencies.push(started.elapsed());
        if !envelope.is_ok() {
            return Err(format!("{envelope:?}").into());
        }
    }
    Ok(latencies)
}

/// A read, a write, and other tools up to `count`.
fn toolset(count: usize) -> Result<Runtime> {
    let tool = |name: &str, effects: &str| {
        json!({ "name": name, "description": "Does nothing.", "type": "function", "sideEffects": effects,
            "idempotent": effects != "writes",
            "parameters": { "type": "object", "additionalProperties": false, "required": ["text"],
                "properties": { "text": { "type": "string", "minLength": 1, "maxLength": 200 } } },
            "implementation": { "type": "builtin", "handler": "noop" } })
    };
    let mut tools = vec![tool("read", "read_only"), tool("write", "writes")];
    tools.extend((2..count).map(|number| tool(&format!("other_{number}"), "none")));
    let mut toolset = Toolset::empty();
    for (part, tools) in tools.chunks(1000).enumerate() {
        let file = format!("{part}.json");
        let (read, errors) =
            declared::read(Path::new(&file), &json!({ "tools": tools }).to_string(), &|_| true);
        if let Some(error) = errors.first() {
            return Err(error.to_string().into());
        }
        toolset = toolset.with_declared(Path::new(&file), read).0;
    }
    let noop = |args: Value, _: Context| ready(Ok::<Success, Failure>(args.into()));
    Ok(Runtime::builder(Arc::new(toolset), ".").native("noop", noop).build())
}

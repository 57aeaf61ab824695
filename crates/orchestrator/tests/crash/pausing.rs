//! A server that is paused for longer than its lease, and wakes up while another one has taken over its calls: each
//! call has one result, which both servers return.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use toolwright_contract::{Envelope, ErrorKind, Failure, Mode, Success};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{self, AuditEntry, Backend};
use toolwright_orchestrator::{CallRequest, Context, Orchestrator, Runtime, ToolCall};
use toolwright_registry::toolset::Toolset;

use crate::instructions::{DIRECTORY, Instructions, StoreLocation, Task};
use crate::killing::{postgres, seed};
use crate::log::{Lines, Reader};
use crate::process::Process;
use crate::support;

const WORKER: &str = "pausing::makes_the_calls_of_its_parent";
const SESSION: &str = "paused";
const LEASE_MS: u64 = 400;
/// A handler takes so long that it is paused while it runs, and that the other server runs it when it wakes up.
const RUN_TIME: Duration = Duration::from_millis(800);
const PAUSES: u64 = 5;
const RUNNING: &str = "the handlers run";
const ANSWERED: &str = "the calls are answered";

/// A run of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Effect {
    tool: String,
    generation: u64,
}

/// The result of a call: the generation whose run it is of, or the error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Answer {
    tool: String,
    generation: u64,
    result: Result<u64, String>,
}

#[test]
fn a_server_that_wakes_up_after_its_lease_owns_nothing_that_another_has_taken_over() {
    for round in 0..PAUSES {
        let directory = tempfile::tempdir().unwrap();
        pause_once(directory.path(), &postgres(LEASE_MS), seed() + round);
    }
}

fn pause_once(directory: &Path, location: &StoreLocation, seed: u64) {
    let start = |generation: u64| {
        let own = directory.join(generation.to_string());
        std::fs::create_dir(&own).unwrap();
        let task = Task::Pause { shared: directory.to_owned() };
        Process::start_worker(
            &own,
            &Instructions { seed, generation, location: location.clone(), task },
            WORKER,
        )
    };
    let first = start(1);
    first.wait_for(RUNNING);
    first.pause();
    // It waits until the lease of the first has expired, and runs what may run again.
    let mut second = start(2);
    second.wait_for(RUNNING);
    first.resume();
    first.wait_for(ANSWERED);
    second.wait_for(ANSWERED);
    first.wait();
    second.start_calls();
    second.wait();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(check(directory, location));
}

async fn check(directory: &Path, location: &StoreLocation) {
    let effects = Reader::default().new_lines::<Effect>(&directory.join("effects"));
    let runs = |tool: &str| -> Vec<u64> {
        effects.iter().filter(|effect| effect.tool == tool).map(|effect| effect.generation).collect()
    };
    assert_eq!(runs("once"), [1], "a call that must not be repeated runs once");
    assert_eq!(runs("again"), [1, 2]);
    let answers = Reader::default().new_lines::<Answer>(&directory.join("answers"));
    let results = |tool: &str, generation: u64| -> Vec<Result<u64, String>> {
        let of = |answer: &&Answer| answer.tool == tool && answer.generation == generation;
        answers.iter().filter(of).map(|answer| answer.result.clone()).collect()
    };
    // The second server has taken this one over: its result counts for both.
    assert_eq!(results("again", 1), [Ok(2)]);
    assert_eq!(results("again", 2), [Ok(2), Ok(2)]);
    // This one was in doubt until the first server had recorded it.
    assert_eq!(results("once", 1), [Ok(1)]);
    let in_doubt = Err(ErrorKind::Internal.as_str().to_owned());
    assert_eq!(results("once", 2), [in_doubt, Ok(1)]);
    let store = support::store(location).await;
    let entries = store.audit_rows(0, 100).await.unwrap();
    let mut called: Vec<String> = entries
        .iter()
        .map(|row| serde_json::from_str::<AuditEntry>(&row.entry).unwrap())
        .filter(|entry| entry.event == "called")
        .map(|entry| entry.execution_id)
        .collect();
    called.sort();
    assert_eq!(called, ["again", "once"], "each end is recorded once");
    if let store::Store::Postgres(postgres) = &store {
        postgres.close().await;
    }
}

/// The process that is paused, and the other one; run as a test, it makes the calls alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn makes_the_calls_of_its_parent() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return work(Instructions::read(&PathBuf::from(directory))).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let location = StoreLocation::Sqlite(directory.path().join("state.db"));
    let task = Task::Pause { shared: directory.path().to_owned() };
    work(Instructions { seed: 1, generation: 1, location, task }).await;
    let answers = Reader::default().new_lines::<Answer>(&directory.path().join("answers"));
    assert!(answers.iter().all(|answer| answer.result == Ok(1)), "{answers:?}");
}

async fn work(instructions: Instructions) {
    let Task::Pause { shared } = &instructions.task else { panic!("{instructions:?}") };
    let generation = instructions.generation;
    let begun = Arc::new(Barrier::new(2));
    let orchestrator = orchestrator(&instructions, shared, &begun).await;
    let answers = Lines::open(&shared.join("answers"));
    let once = async {
        let result = call(&orchestrator, "once").await;
        // The second server does not run it.
        if generation == 2 {
            say_running(&begun).await;
        }
        result
    };
    let (again, once) = tokio::join!(call(&orchestrator, "again"), once);
    answers.add(&Answer { tool: "again".to_owned(), generation, result: again });
    answers.add(&Answer { tool: "once".to_owned(), generation, result: once });
    println!("{ANSWERED}");
    if generation == 2 {
        std::io::stdin().read_line(&mut String::new()).unwrap();
        for tool in ["again", "once"] {
            let result = call(&orchestrator, tool).await;
            answers.add(&Answer { tool: tool.to_owned(), generation, result });
        }
    }
    if let store::Store::Postgres(postgres) = orchestrator.store() {
        postgres.close().await;
    }
}

/// Says that the handlers run, when both calls have come so far.
async fn say_running(begun: &Barrier) {
    if begun.wait().await.is_leader() {
        // The test harness has not ended its line.
        println!("\n{RUNNING}");
    }
}

/// Makes the call of a tool, whose id is the tool's name.
async fn call(orchestrator: &Orchestrator, tool: &str) -> Result<u64, String> {
    let call = ToolCall { id: Some(tool.to_owned()), tool: tool.to_owned(), args: json!({}) };
    let envelope: Arc<Envelope> = orchestrator.call(CallRequest::new(SESSION, call)).await;
    match &envelope.outcome {
        Ok(success) => Ok(success.data["generation"].as_u64().unwrap()),
        Err(failure) => Err(failure.kind.as_str().to_owned()),
    }
}

async fn orchestrator(instructions: &Instructions, shared: &Path, begun: &Arc<Barrier>) -> Orchestrator {
    let tools = vec![
        support::tool("again", &json!({ "idempotent": true })),
        support::tool("once", &json!({ "idempotent": false })),
    ];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    let effects = Arc::new(Lines::effects(shared));
    let (begun, generation) = (Arc::clone(begun), instructions.generation);
    let runtime = Runtime::builder(Arc::new(toolset), ".")
        .native("work", move |_: Value, context| {
            run(context, Arc::clone(&effects), Arc::clone(&begun), generation)
        })
        .build();
    let store = support::store(&instructions.location).await;
    let orchestrator = Orchestrator::builder(runtime).store(store).build().unwrap();
    let new = NewSession { id: Some(SESSION.to_owned()), ..NewSession::new("client", Mode::Text) };
    match orchestrator.create_session(new).await {
        Ok(_) | Err(store::Error::Exists(_)) => orchestrator,
        Err(error) => panic!("{error}"),
    }
}

/// Writes one effect, and runs for a while.
async fn run(
    context: Context,
    effects: Arc<Lines>,
    begun: Arc<Barrier>,
    generation: u64,
) -> Result<Success, Failure> {
    effects.add(&Effect { tool: context.execution_id().to_owned(), generation });
    say_running(&begun).await;
    tokio::time::sleep(RUN_TIME).await;
    Ok(json!({ "generation": generation }).into())
}

//! A server whose background tasks run while it is killed, again and again: each task runs once, or is in doubt; one
//! that may be repeated always gets its result.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_contract::{Failure, Mode, Success};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{self, AuditEntry, Backend, Store, TaskRecord, TaskStatus};
use toolwright_orchestrator::{CallRequest, Capacity, Context, Orchestrator, Runtime, ToolCall};
use toolwright_registry::toolset::Toolset;

use crate::instructions::{DIRECTORY, Instructions, StoreLocation, Task};
use crate::killing::{postgres, seed};
use crate::log::{Lines, Reader};
use crate::plan::hash_of;
use crate::process::Process;
use crate::support;
use crate::worker::READY;

const TASKS: u64 = 1000;
const KILLS: u64 = 50;
/// How many run at a time.
const AT_A_TIME: usize = 8;
const SESSION: &str = "tasks";
const WORKER: &str = "tasks::runs_the_tasks_of_its_parent";
const LEASE_MS: u64 = 120;
/// The longest time until a process is killed.
const MAX_LIFE_US: u64 = 120_000;
/// How often a server looks for the tasks of others.
const RESUME_INTERVAL: Duration = Duration::from_millis(20);

/// A run of a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Effect {
    number: u64,
    generation: u64,
    nonce: u64,
}

/// A call that was answered with a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Begun {
    number: u64,
    task: String,
}

fn runs_once(number: u64) -> bool {
    !number.is_multiple_of(3)
}

#[test]
fn tasks_of_a_server_on_sqlite_that_is_killed_run_once_or_are_in_doubt() {
    let directory = tempfile::tempdir().unwrap();
    kill_repeatedly(directory.path(), &StoreLocation::Sqlite(directory.path().join("state.db")));
}

#[test]
fn tasks_of_a_server_on_postgres_that_is_killed_run_once_or_are_in_doubt() {
    let directory = tempfile::tempdir().unwrap();
    kill_repeatedly(directory.path(), &postgres(LEASE_MS));
}

fn kill_repeatedly(directory: &Path, location: &StoreLocation) {
    let (begun, seed) = (Instant::now(), seed());
    let instructions = |generation, until, ends| {
        let task = Task::Background { until, ends };
        Instructions { seed, generation, location: location.clone(), task }
    };
    for kill in 1..=KILLS {
        let process =
            Process::start_worker(directory, &instructions(kill, TASKS * kill / KILLS, false), WORKER);
        process.wait_for(READY);
        process.kill_after(Duration::from_micros(hash_of(seed, kill, 3) % MAX_LIFE_US));
    }
    Process::start_worker(directory, &instructions(KILLS + 1, TASKS, true), WORKER).wait();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let counts = runtime.block_on(check(directory, location));
    println!("{KILLS} kills in {:.1?}; {counts:?}", begun.elapsed());
}

#[derive(Debug, Default)]
struct Counts {
    completed: u64,
    in_doubt: u64,
    in_doubt_with_effect: u64,
    run_again: u64,
}

/// Checks every task against the effects, the answers and the audit.
async fn check(directory: &Path, location: &StoreLocation) -> Counts {
    let store = support::store(location).await;
    let mut effects: BTreeMap<u64, Vec<Effect>> = BTreeMap::new();
    for effect in Reader::default().new_lines::<Effect>(&directory.join("effects")) {
        effects.entry(effect.number).or_default().push(effect);
    }
    let begun = Reader::default().new_lines::<Begun>(&directory.join("begun"));
    let begun: BTreeMap<u64, String> = begun.into_iter().map(|begun| (begun.number, begun.task)).collect();
    assert_eq!(begun.len() as u64, TASKS, "every call was answered with a task");
    let runs = audited_runs(&store).await;
    let mut counts = Counts::default();
    for (number, id) in &begun {
        let task = store.task(id).await.unwrap().unwrap();
        let effects = effects.get(number).map_or(&[][..], Vec::as_slice);
        check_task(*number, &task, effects, &store, &mut counts).await;
        let expected = usize::from(task.status == TaskStatus::Completed);
        assert_eq!(runs.get(id).copied().unwrap_or(0), expected, "{number} in the audit: {task:?}");
    }
    assert!(counts.in_doubt <= KILLS * AT_A_TIME as u64, "{counts:?}");
    if let Store::Postgres(postgres) = &store {
        postgres.close().await;
    }
    counts
}

async fn check_task(number: u64, task: &TaskRecord, effects: &[Effect], store: &Store, counts: &mut Counts) {
    counts.run_again += u64::from(effects.len() > 1);
    assert!(!runs_once(number) || effects.len() <= 1, "{number} ran again: {effects:?}");
    match task.status {
        TaskStatus::Completed => {
            counts.completed += 1;
            let record = store.execution(&task.session, &task.id).await.unwrap().unwrap();
            let store::ExecutionStatus::Finished(envelope) = record.status else {
                panic!("{number}: {task:?}")
            };
            let nonce = envelope.outcome.as_ref().unwrap().data["nonce"].as_u64().unwrap();
            assert!(effects.iter().any(|effect| effect.nonce == nonce), "{number}: {effects:?}");
        }
        TaskStatus::InDoubt => {
            assert!(runs_once(number), "{number} may be repeated, and is in doubt: {task:?}");
            assert!(task.unrecorded.as_ref().is_some_and(|envelope| envelope.outcome.is_err()));
            counts.in_doubt += 1;
            counts.in_doubt_with_effect += effects.len() as u64;
        }
        _ => panic!("{number} has ended as {task:?}"),
    }
}

/// How many runs of each task the audit has.
async fn audited_runs(store: &Store) -> HashMap<String, usize> {
    let (mut verifier, mut after) = (store::chain::Verifier::default(), 0);
    let mut runs = HashMap::<String, usize>::new();
    loop {
        let rows = store.audit_rows(after, 5000).await.unwrap();
        let Some(last) = rows.last() else { return runs };
        after = last.number;
        for row in &rows {
            verifier.check(row).unwrap();
            let entry: AuditEntry = serde_json::from_str(&row.entry).unwrap();
            *runs.entry(entry.execution_id).or_default() += usize::from(entry.event == "called");
        }
    }
}

/// The process that is killed; run as a test, it runs a few tasks and ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_the_tasks_of_its_parent() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let directory = PathBuf::from(directory);
        return work(&directory, Instructions::read(&directory)).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let location = StoreLocation::Sqlite(directory.path().join("state.db"));
    let task = Task::Background { until: 20, ends: true };
    work(directory.path(), Instructions { seed: 1, generation: 1, location, task }).await;
}

async fn work(directory: &Path, instructions: Instructions) {
    let Task::Background { until, ends } = instructions.task else { panic!("{instructions:?}") };
    let orchestrator = orchestrator(&instructions, directory).await;
    orchestrator.resume_tasks().await.unwrap();
    // The test harness has not ended its line.
    println!("\n{READY}");
    let known = Reader::default().new_lines::<Begun>(&directory.join("begun"));
    let mut tasks: BTreeMap<u64, String> =
        known.into_iter().map(|begun| (begun.number, begun.task)).collect();
    let log = Lines::open(&directory.join("begun"));
    for number in 0..until {
        if let Entry::Vacant(new) = tasks.entry(number) {
            let task = begin(&orchestrator, number).await;
            log.add(&Begun { number, task: task.clone() });
            new.insert(task);
        }
    }
    loop {
        orchestrator.resume_tasks().await.unwrap();
        if ends && all_have_ended(&orchestrator, tasks.values()).await {
            break;
        }
        tokio::time::sleep(RESUME_INTERVAL).await;
    }
    if let Store::Postgres(postgres) = orchestrator.store() {
        postgres.close().await;
    }
}

async fn all_have_ended(orchestrator: &Orchestrator, tasks: impl Iterator<Item = &String>) -> bool {
    for id in tasks {
        if !orchestrator.task(id).await.unwrap().unwrap().has_ended() {
            return false;
        }
    }
    true
}

/// Makes a call, which is answered with a task, also if it was made before.
async fn begin(orchestrator: &Orchestrator, number: u64) -> String {
    let tool = if runs_once(number) { "once" } else { "again" }.to_owned();
    let call = ToolCall { id: Some(format!("call {number}")), tool, args: json!({ "number": number }) };
    let envelope = orchestrator.call(CallRequest::new(SESSION, call)).await;
    let data = &envelope.outcome.as_ref().unwrap().data;
    data["task"]["taskId"].as_str().unwrap().to_owned()
}

async fn orchestrator(instructions: &Instructions, directory: &Path) -> Orchestrator {
    let tool =
        |id, idempotent| support::tool(id, &json!({ "idempotent": idempotent, "execution": "background" }));
    let tools = vec![tool("once", false), tool("again", true)];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    let effects = Arc::new(Lines::effects(directory));
    let (generation, seed) = (instructions.generation, instructions.seed);
    let runtime = Runtime::builder(Arc::new(toolset), ".")
        .native("work", move |args, context| run(args, context, Arc::clone(&effects), generation, seed))
        .build();
    let capacity = Capacity { max_background: AT_A_TIME, ..Capacity::default() };
    let store = support::store(&instructions.location).await;
    let orchestrator = Orchestrator::builder(runtime).store(store).capacity(capacity).build().unwrap();
    let new = NewSession { id: Some(SESSION.to_owned()), ..NewSession::new("client", Mode::Text) };
    match orchestrator.create_session(new).await {
        Ok(_) | Err(store::Error::Exists(_)) => orchestrator,
        Err(error) => panic!("{error}"),
    }
}

/// Writes one effect, and returns its nonce.
async fn run(
    args: Value,
    context: Context,
    effects: Arc<Lines>,
    generation: u64,
    seed: u64,
) -> Result<Success, Failure> {
    let number = args["number"].as_u64().unwrap();
    let pause = |part| Duration::from_micros(hash_of(seed, number, part) % 6000);
    tokio::time::sleep(pause(4)).await;
    context.progress(0.5, Some("half of it"));
    let mut nonce = [0; 8];
    getrandom::fill(&mut nonce).unwrap();
    let nonce = u64::from_le_bytes(nonce);
    effects.add(&Effect { number, generation, nonce });
    tokio::time::sleep(pause(5)).await;
    Ok(json!({ "nonce": nonce }).into())
}

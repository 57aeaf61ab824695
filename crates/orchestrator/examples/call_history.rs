//! Measures pages of the call history in a large SQLite store.
//!
//! `cargo run --release --example call_history -- [calls] [directory] [keep]`
//!
//! With `keep` it only writes the store, `state.db` in the directory, for `scripts/console-load`.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::steps::{CallStep, Steps};
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{
    ANY_ERROR, AuditEntry, AuditFilter, AuditQuery, Backend, Durability, SessionQuery, SessionRecord,
    SessionStatus, Spent, Sqlite,
};

/// One call of 10,000 has the rare tool, and one of 50,000 fails.
const RARE: u64 = 10_000;
const FAILING: u64 = 50_000;
const CALLS_PER_SESSION: u64 = 100;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let calls: u64 = arguments.next().map_or(1_000_000, |text| text.parse().unwrap());
    let parent = arguments.next().unwrap_or_else(|| ".".to_owned());
    let is_kept = arguments.next().is_some_and(|word| word == "keep");
    if is_kept {
        return write_store(&std::path::Path::new(&parent).join("state.db"), calls).await;
    }
    let directory = tempfile::tempdir_in(&parent).unwrap();
    let path = directory.path().join("state.db");
    write_store(&path, calls).await;
    measure(&path, calls).await;
}

async fn write_store(path: &std::path::Path, calls: u64) {
    let store = Arc::new(Sqlite::open(path, Options::default()).unwrap());
    let started = Instant::now();
    for number in 1..=calls {
        if number % CALLS_PER_SESSION == 1 {
            store.create_session(session(number), Durability::Committed).await.unwrap();
        }
        store.append_audit(entry(number)).await.unwrap();
    }
    store.flush().await.unwrap();
    println!("{calls} calls written in {:.1?}", started.elapsed());
    println!("file: {} MiB", std::fs::metadata(path).unwrap().len() >> 20);
    store.close();
}

async fn measure(path: &std::path::Path, calls: u64) {
    let started = Instant::now();
    let store = Sqlite::open(path, Options::default()).unwrap();
    println!("opened again in {:.1?}", started.elapsed());
    for (name, filter, before) in queries(calls) {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..20 {
            let query = AuditQuery { filter: filter.clone(), before, limit: 50 };
            let started = Instant::now();
            found = store.audit_page(&query).await.unwrap().entries.len();
            times.push(started.elapsed());
        }
        print(name, found, times);
    }
    let mut times = Vec::new();
    for _ in 0..20 {
        let started = Instant::now();
        let page = SessionQuery { principal: None, before: None, limit: 50 };
        assert_eq!(store.session_page(page).await.unwrap().sessions.len(), 50);
        times.push(started.elapsed());
    }
    print("sessions", 50, times);
}

fn print(name: &str, found: usize, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("{name:<40} {found:>3} found  {:>10.2?} median  {:>10.2?} worst", times[10], times[19]);
}

fn queries(calls: u64) -> Vec<(&'static str, AuditFilter, Option<u64>)> {
    let text = |text: &str| Some(text.to_owned());
    let all = AuditFilter { calls_only: true, ..AuditFilter::default() };
    let principal = Principal { id: "user_7".to_owned(), org: text("studio"), roles: Vec::new() };
    vec![
        ("newest", all.clone(), None),
        ("in the middle", all.clone(), Some(calls / 2)),
        ("a common tool", AuditFilter { tool: text("tool_3"), ..all.clone() }, None),
        ("a rare tool", AuditFilter { tool: text("rare"), ..all.clone() }, None),
        ("a tool that was never called", AuditFilter { tool: text("never"), ..all.clone() }, None),
        ("errors", AuditFilter { outcome: text(ANY_ERROR), ..all.clone() }, None),
        ("one user", AuditFilter { principal: Some(principal.key()), ..all.clone() }, None),
        ("one session, old", AuditFilter { session: text("session_000000000101"), ..all.clone() }, None),
        (
            "common alone, never together",
            AuditFilter { outcome: text("ok"), event: text("refused"), ..all.clone() },
            None,
        ),
        (
            "an hour, long ago",
            AuditFilter { from: Some(60_000_000), until: Some(63_600_000), ..all.clone() },
            None,
        ),
        (
            "one call, old",
            AuditFilter {
                session: text("session_000000000101"),
                execution: text("call_000000000150"),
                ..AuditFilter::default()
            },
            None,
        ),
    ]
}

fn session(number: u64) -> SessionRecord {
    SessionRecord {
        id: format!("session_{number:012}"),
        client_id: "client".to_owned(),
        principal: Principal::default(),
        mode: Mode::Text,
        toolset: "1.0.abcdef12".to_owned(),
        turn: 0,
        spent: Spent::default(),
        state: serde_json::Value::Null,
        remembered: Vec::new(),
        status: SessionStatus::Active,
        created_at: number.cast_signed(),
        expires_at: i64::MAX,
        revision: 0,
    }
}

fn entry(number: u64) -> AuditEntry {
    let is_refused = number.is_multiple_of(100);
    let outcome = match () {
        () if number.is_multiple_of(FAILING) => "INTERNAL",
        () if is_refused => "VALIDATION",
        () => "ok",
    };
    let tool = if number.is_multiple_of(RARE) { "rare".to_owned() } else { format!("tool_{}", number % 20) };
    AuditEntry {
        at: (number * 100).cast_signed(),
        event: if is_refused { "refused" } else { "called" }.to_owned(),
        session: format!("session_{:012}", (number - 1) / CALLS_PER_SESSION * CALLS_PER_SESSION + 1),
        client_id: "client".to_owned(),
        tool,
        tool_version: "1.2.0".to_owned(),
        registry_version: "1.0.abcdef12".to_owned(),
        execution_id: format!("call_{number:012}"),
        args_digest: format!("{number:064x}"),
        outcome: outcome.to_owned(),
        duration_ms: number % 40,
        principal: format!("user_{}", number % 1000),
        org: Some("studio".to_owned()),
        steps: Steps::from_iter([
            (CallStep::Resolve, 9),
            (CallStep::Admit, 31),
            (CallStep::Run, 1500),
            (CallStep::Settle, 4),
        ]),
        ..AuditEntry::default()
    }
}

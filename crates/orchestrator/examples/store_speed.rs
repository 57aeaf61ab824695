//! Measures the SQLite store: durable calls per second (a committed claim, then a committed settlement with its audit
//! entry), compared with the speed of the disk.
//!
//! `cargo run --release --example store_speed -- [callers] [seconds] [directory]`

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use toolwright_contract::{Envelope, Meta, Mode, Principal, Success};
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{
    AuditEntry, Backend, Claim, ClaimOutcome, Durability, SessionRecord, SessionStatus, Settlement, Spent,
    Sqlite,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let callers: usize = arguments.next().map_or(64, |text| text.parse().unwrap());
    let seconds: u64 = arguments.next().map_or(5, |text| text.parse().unwrap());
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let directory = tempfile::tempdir_in(directory).unwrap();
    println!("disk: {:.0} fsyncs/s of 64 KiB", disk(directory.path()));

    let path = directory.path().join("state.db");
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for durability in [Durability::Committed, Durability::Relaxed] {
        let store = Arc::new(Sqlite::open(&path, Options::default()).unwrap());
        let mut times = threads.block_on(load(&store, callers, Duration::from_secs(seconds), durability));
        times.sort_unstable();
        let share = |part: usize| times[(times.len() - 1) * part / 1000];
        println!(
            "{durability:?}: {} calls/s by {callers} callers; a call takes {:?} (median), {:?} (99 %), {:?} (worst)",
            times.len() as u64 / seconds,
            share(500),
            share(990),
            share(1000),
        );
    }
    println!("file: {} MiB", std::fs::metadata(&path).unwrap().len() >> 20);
    let begun = Instant::now();
    Sqlite::open(&path, Options::default()).unwrap();
    println!("opened again in {:?}", begun.elapsed());
}

fn disk(directory: &Path) -> f64 {
    let mut file = File::create(directory.join("probe")).unwrap();
    let block = [7; 64 << 10];
    for _ in 0..64 {
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
    let (begun, mut count) = (Instant::now(), 0_u32);
    while begun.elapsed() < Duration::from_secs(1) {
        file.seek(SeekFrom::Start(u64::from(count % 64) * (64 << 10))).unwrap();
        file.write_all(&block).unwrap();
        file.sync_all().unwrap();
        count += 1;
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

async fn load(store: &Arc<Sqlite>, callers: usize, limit: Duration, durability: Durability) -> Vec<Duration> {
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for caller in 0..callers {
        let (store, id) = (Arc::clone(store), format!("{durability:?}-session-{caller:0>20}"));
        store.create_session(session(&id), Durability::Committed).await.unwrap();
        tasks.spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < limit {
                let call = claim(&id, format!("call_{:0>24}", times.len()), durability);
                let (started, settlement) = (Instant::now(), settlement(&call));
                assert_eq!(store.claim(call).await.unwrap(), ClaimOutcome::New);
                store.settle(settlement).await.unwrap();
                times.push(started.elapsed());
                if durability == Durability::Relaxed {
                    tokio::task::yield_now().await;
                }
            }
            times
        });
    }
    tasks.join_all().await.concat()
}

fn session(id: &str) -> SessionRecord {
    SessionRecord {
        id: id.to_owned(),
        client_id: "client".to_owned(),
        principal: Principal::default(),
        mode: Mode::Text,
        toolset: "1.0.abcdef12".to_owned(),
        turn: 0,
        spent: Spent::default(),
        state: Value::Null,
        remembered: Vec::new(),
        status: SessionStatus::Active,
        created_at: 0,
        expires_at: i64::MAX,
        revision: 0,
    }
}

fn claim(session: &str, execution: String, durability: Durability) -> Claim {
    Claim {
        session: session.to_owned(),
        execution: execution.into(),
        tool: "mail_send".into(),
        tool_version: "1.2.0".into(),
        digest: [7; 32],
        idempotent: durability == Durability::Relaxed,
        charges: Vec::new(),
        rates: Vec::new(),
        confirmation: None,
        now: 1_780_000_000_000,
        durability,
        lease: None,
    }
}

fn settlement(claim: &Claim) -> Settlement {
    let meta = Meta {
        tool: claim.tool.as_ref().to_owned(),
        tool_version: Some(claim.tool_version.as_ref().to_owned()),
        registry_version: "1.0.abcdef12".to_owned(),
        duration: 12,
        execution_id: claim.execution.as_ref().to_owned(),
        more: Map::new(),
    };
    let data =
        json!({"sent": true, "to": "ada@example.org", "subject": "The meeting is at ten", "copies": 1});
    let audit = AuditEntry {
        at: claim.now,
        event: "call".to_owned(),
        session: claim.session.clone(),
        client_id: "client".to_owned(),
        tool: claim.tool.as_ref().to_owned(),
        tool_version: claim.tool_version.as_ref().to_owned(),
        registry_version: meta.registry_version.clone(),
        execution_id: claim.execution.as_ref().to_owned(),
        args_digest: "07".repeat(32),
        outcome: "ok".to_owned(),
        duration_ms: 12,
        intents: Vec::new(),
        data: Value::Null,
        ..AuditEntry::default()
    };
    Settlement {
        session: claim.session.clone(),
        execution: claim.execution.clone(),
        envelope: Arc::new(Envelope { outcome: Ok(Success::from(data)), meta }),
        args: None,
        audit,
        durability: claim.durability,
    }
}

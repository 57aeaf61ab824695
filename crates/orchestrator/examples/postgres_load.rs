//! Measures how many calls per second the PostgreSQL store claims and settles.
//!
//!     cargo run --release -p toolwright-orchestrator --example postgres_load -- URL [CALLERS] [SECONDS] [CONNECTIONS]

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolwright_contract::{Envelope, Meta, Mode, Principal, Success};
use toolwright_orchestrator::store::postgres::Options;
use toolwright_orchestrator::store::{
    AuditEntry, Backend, Charge, Claim, ClaimOutcome, Durability, MeterScope, Postgres, RETRIEVAL_METER,
    SessionRecord, SessionStatus, Settlement, Spent,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of a database is missing")?;
    let callers: usize = arguments.next().map_or(Ok(64), |count| count.parse())?;
    let seconds = arguments.next().map_or(Ok(5), |seconds| seconds.parse())?;
    let connections = arguments.next().map_or(Ok(Options::default().connections), |count| count.parse())?;
    let schema = format!("load_{}", std::process::id());
    let store =
        Arc::new(Postgres::connect(&url, Options { schema, connections, ..Options::default() }).await?);
    for caller in 0..callers {
        store.create_session(session(&caller.to_string()), Durability::Committed).await?;
    }
    for durability in [Durability::Committed, Durability::Relaxed] {
        let took = measure(&store, callers, Duration::from_secs(seconds), durability).await?;
        let per_second = took.len() as f64 / seconds as f64;
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        println!(
            "{durability:?}: {per_second:.0} claims and settles a second, {callers} callers, {connections} connections; \
             p50 {:?}, p99 {:?}",
            at(0.5),
            at(0.99)
        );
    }
    store.close().await;
    Ok(())
}

/// The latency of each call, from claim to settlement, sorted.
async fn measure(
    store: &Arc<Postgres>,
    callers: usize,
    duration: Duration,
    durability: Durability,
) -> Outcome<Vec<Duration>> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let end = Instant::now() + duration;
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let start = Instant::now();
                let execution = NUMBER.fetch_add(1, Ordering::Relaxed).to_string();
                let claim = claim(&caller.to_string(), &execution, durability);
                if store.claim(claim.clone()).await? != ClaimOutcome::New {
                    return Err("the store did not accept a new call".into());
                }
                store.settle(settlement(claim)).await?;
                took.push(start.elapsed());
            }
            Outcome::Ok(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = tasks.join_next().await {
        all.extend(took??);
    }
    all.sort();
    Ok(all)
}

fn session(id: &str) -> SessionRecord {
    SessionRecord {
        id: id.to_owned(),
        client_id: "load".to_owned(),
        principal: Principal::default(),
        mode: Mode::Text,
        toolset: "1.0.0".to_owned(),
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

fn claim(session: &str, execution: &str, durability: Durability) -> Claim {
    Claim {
        session: session.to_owned(),
        execution: execution.into(),
        tool: "mail_send".into(),
        tool_version: "1.0.0".into(),
        digest: [7; 32],
        idempotent: durability == Durability::Relaxed,
        charges: if durability == Durability::Relaxed { retrieval_charge() } else { Vec::new() },
        rates: Vec::new(),
        confirmation: None,
        now: 0,
        durability,
        lease: None,
    }
}

fn settlement(claim: Claim) -> Settlement {
    let success = Success::from(json!({"sent": true, "to": ["ada@example.org"]}));
    let meta = Meta {
        tool: claim.tool.as_ref().to_owned(),
        tool_version: Some(claim.tool_version.as_ref().to_owned()),
        registry_version: "1.0.0".to_owned(),
        duration: 3,
        execution_id: claim.execution.as_ref().to_owned(),
        more: serde_json::Map::new(),
    };
    let audit = AuditEntry {
        at: 0,
        event: "call".to_owned(),
        session: claim.session.clone(),
        client_id: "load".to_owned(),
        tool: claim.tool.as_ref().to_owned(),
        tool_version: claim.tool_version.as_ref().to_owned(),
        registry_version: "1.0.0".to_owned(),
        execution_id: claim.execution.as_ref().to_owned(),
        args_digest: "07".repeat(32),
        outcome: "ok".to_owned(),
        duration_ms: 3,
        intents: Vec::new(),
        data: Value::Null,
        ..AuditEntry::default()
    };
    Settlement {
        session: claim.session,
        execution: claim.execution,
        envelope: Arc::new(Envelope { outcome: Ok(success), meta }),
        args: None,
        audit,
        durability: claim.durability,
    }
}

fn retrieval_charge() -> Vec<Charge> {
    vec![Charge { meter: RETRIEVAL_METER, scope: MeterScope::Turn, amount: 1, limit: u32::MAX }]
}

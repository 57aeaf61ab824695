//! An orchestrator on a given store, with tools whose effects survive the process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_contract::{Failure, Success};
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::store::{Postgres, Sqlite, Store, postgres, sqlite};
use toolwright_orchestrator::{Context, Orchestrator, Runtime};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::instructions::StoreLocation;
use crate::log::{Effect, Lines};

pub async fn store(location: &StoreLocation) -> Store {
    match location {
        // A small cache, so that envelopes are read from the file, too.
        StoreLocation::Sqlite(path) => {
            let options = sqlite::Options { envelope_cache_bytes: 64 << 10, ..sqlite::Options::default() };
            Store::Sqlite(Sqlite::open(path, options).unwrap())
        }
        StoreLocation::Postgres { url, schema, lease_ms } => {
            let lease = Duration::from_millis(*lease_ms);
            let schema = schema.clone();
            let options = postgres::Options { schema, lease, connections: 6, ..postgres::Options::default() };
            Store::Postgres(Postgres::connect(url, options).await.unwrap())
        }
    }
}

pub fn orchestrator(store: Store, directory: &Path, generation: u64) -> Orchestrator {
    let retrieval = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let tools = vec![
        tool("write", &json!({})),
        tool("redo", &json!({ "idempotent": true })),
        tool("read", &retrieval),
        tool("careful", &json!({ "requiresConfirmation": true })),
    ];
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
    assert_eq!(errors, []);
    let effects = Arc::new(Lines::effects(directory));
    let runtime = Runtime::builder(Arc::new(toolset), ".")
        .native("work", move |args, context| work(args, context, Arc::clone(&effects), generation))
        .build();
    let mut policy = Policy::default();
    policy.text.limits.retrieval_calls = u32::MAX;
    Orchestrator::builder(runtime).store(store).policy(policy).build().unwrap()
}

pub fn tool(id: &str, fields: &Value) -> Tool {
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

/// Writes one effect, and returns its nonce.
async fn work(
    args: Value,
    context: Context,
    effects: Arc<Lines>,
    generation: u64,
) -> Result<Success, Failure> {
    pause(&args["before"]).await;
    let mut nonce = [0; 8];
    getrandom::fill(&mut nonce).unwrap();
    let nonce = u64::from_le_bytes(nonce);
    let id = context.execution_id().parse().unwrap();
    effects.add(&Effect { generation, id, nonce });
    pause(&args["after"]).await;
    Ok(json!({ "nonce": nonce, "of": context.execution_id() }).into())
}

async fn pause(microseconds: &Value) {
    match microseconds.as_u64().unwrap() {
        // Some calls run without waiting.
        0..300 => {}
        long => tokio::time::sleep(Duration::from_micros(long)).await,
    }
}

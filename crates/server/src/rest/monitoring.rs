//! Counters, the audit log, liveness and readiness.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};
use toolwright_orchestrator::store::{AuditRow, Backend};

use crate::body;
use crate::json;
use crate::problem::{Kind, Problem};
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};

/// Audit entries in one response.
const MAX_ENTRIES: u64 = 1000;
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

pub(crate) async fn metrics(request: ApiRequest<'_>) -> ApiResult {
    let counters = &request.app.counters;
    let responses: serde_json::Map<String, Value> =
        counters.responses().map(|(class, count)| (class.to_owned(), count.into())).collect();
    let handlers = request.app.orchestrator.capacity_use();
    Ok(json::response(&json!({
        "tools": request.app.orchestrator.metrics(),
        "handlers": { "running": handlers.running, "waiting": handlers.waiting },
        "http": {
            "answered": responses,
            "running": counters.running.load(Ordering::Relaxed),
            "connections": counters.connections.load(Ordering::Relaxed),
        },
    })))
}

pub(crate) async fn audit(request: ApiRequest<'_>) -> ApiResult {
    let [after, limit] = request.query(["after", "limit"])?;
    let after = number("after", after.as_deref(), 0, i64::MAX as u64)?;
    let limit = number("limit", limit.as_deref(), 100, MAX_ENTRIES)?;
    let rows = request.app.orchestrator.store().audit_rows(after, limit as usize).await?;
    let next = rows.last().map_or(after, |row| row.number);
    let entries: Vec<Value> = rows.iter().map(to_json).collect();
    Ok(json::response(&json!({ "entries": entries, "next": next })))
}

/// The entry, with its position in the hash chain.
fn to_json(row: &AuditRow) -> Value {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    json!({ "number": row.number, "chain": row.chain, "position": row.position, "previous": row.previous,
        "hash": row.hash, "entry": entry })
}

pub(crate) async fn healthy(_: ApiRequest<'_>) -> ApiResult {
    Ok(body::response(PLAIN_TEXT, "ok\n"))
}

/// The toolset was loaded before the server began to listen, so readiness depends on free seats for handlers and on the
/// store: it must be possible to record a call.
pub(crate) async fn ready(request: ApiRequest<'_>) -> ApiResult {
    if request.app.is_shutting_down() {
        return Err(Problem::new(Kind::UNAVAILABLE, "The server is shutting down."));
    }
    let handlers = request.app.orchestrator.capacity_use();
    if handlers.is_full() {
        let detail = format!(
            "All {} handlers that may run at a time are running, and {} calls wait.",
            handlers.seats, handlers.waiting
        );
        return Err(Problem::new(Kind::UNAVAILABLE, detail));
    }
    let write = request.app.orchestrator.store().test_write();
    match request.app.write_test.outcome(Instant::now, write).await {
        Ok(()) => Ok(body::response(PLAIN_TEXT, "ready\n")),
        Err(reason) => Err(Problem::new(Kind::UNAVAILABLE, reason)),
    }
}

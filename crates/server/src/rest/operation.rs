//! For those who operate a server: counters, the audit, whether it lives and whether it can work.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use toolwright_orchestrator::store::{AuditRow, Backend};

use crate::body::Body;
use crate::dispatch::{Answer, Asked};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::query::number;

/// Rows of the audit in one answer.
const MOST_ROWS: u64 = 1000;
/// A store that takes longer cannot be worked with.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn metrics(asked: &Asked<'_>) -> Answer {
    let counters = &asked.app.counters;
    let answered: serde_json::Map<String, Value> =
        counters.answered().map(|(class, count)| (class.to_owned(), count.into())).collect();
    Ok(json::answer(&json!({
        "tools": asked.app.orchestrator.metrics(),
        "http": {
            "answered": answered,
            "running": counters.running.load(Ordering::Relaxed),
            "connections": counters.connections.load(Ordering::Relaxed),
        },
    })))
}

pub(crate) async fn audit(asked: &Asked<'_>) -> Answer {
    let [after, limit] = asked.query(["after", "limit"])?;
    let after = number("after", after.as_deref(), 0, i64::MAX as u64)?;
    let limit = number("limit", limit.as_deref(), 100, MOST_ROWS)?;
    let rows = asked.app.orchestrator.store().audit_rows(after, limit as usize).await?;
    let next = rows.last().map_or(after, |row| row.number);
    let entries: Vec<Value> = rows.iter().map(shown).collect();
    Ok(json::answer(&json!({ "entries": entries, "next": next })))
}

/// The entry as JSON, and its place in the chain.
fn shown(row: &AuditRow) -> Value {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    json!({ "number": row.number, "chain": row.chain, "position": row.position, "previous": row.previous,
        "hash": row.hash, "entry": entry })
}

pub(crate) fn healthy() -> Response<Body> {
    text("ok\n")
}

/// The toolset was loaded before anything was listened to; the store is asked.
pub(crate) async fn ready(asked: &Asked<'_>) -> Answer {
    if asked.app.is_stopping.load(Ordering::Relaxed) {
        return Err(Problem::new(Kind::Unavailable, "The server is stopping."));
    }
    let store = asked.app.orchestrator.store();
    match tokio::time::timeout(PATIENCE, store.audit_rows(i64::MAX as u64, 1)).await {
        Ok(Ok(_)) => Ok(text("ready\n")),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Problem::new(Kind::Unavailable, "The store does not answer.")),
    }
}

fn text(text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::whole(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

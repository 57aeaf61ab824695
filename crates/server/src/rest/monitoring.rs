//! Counters, liveness and readiness.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};
use toolwright_orchestrator::store::Backend;

use crate::body;
use crate::json;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResult};

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

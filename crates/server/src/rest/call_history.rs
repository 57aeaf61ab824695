//! `/v1/calls`: the calls that have ended, newest first, and one call with all that is known of it. An admin sees all
//! of them, everyone else their own.

use std::borrow::Cow;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolwright_contract::Principal;
use toolwright_orchestrator::store::{
    AuditEntry, AuditFilter, AuditQuery, Backend, CALL_EVENTS, NumberedEntry,
};
use toolwright_orchestrator::{CallHistory, RecordSource};

use crate::app::App;
use crate::body;
use crate::chunk_queue::{self, ChunkSender};
use crate::json;
use crate::problem::{Kind, Problem};
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;
/// Keeps proxies from closing the connection, and detects clients that are gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// A page of calls.
pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [tool, outcome, event, session, principal, org, from, until, before, limit] = request.query([
        "tool",
        "outcome",
        "event",
        "sessionId",
        "principal",
        "org",
        "from",
        "until",
        "before",
        "limit",
    ])?;
    let filter = filter(&request, [tool, outcome, event, session, principal, org, from, until])?;
    let before =
        before.as_deref().map(|text| number("before", Some(text), 0, i64::MAX as u64)).transpose()?;
    let limit = number("limit", limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT)?.max(1);
    let query = AuditQuery { filter, before, limit: limit as usize };
    let page = request.app.orchestrator.store().audit_page(&query).await?;
    let calls: Vec<Value> = page.entries.iter().map(to_json).collect();
    Ok(json::response(&json!({ "calls": calls, "next": page.next })))
}

/// The filter that the query parameters say, of the calls that the caller may see.
pub(crate) fn filter(
    request: &ApiRequest<'_>,
    [tool, outcome, event, session, principal, org, from, until]: [Option<Cow<'_, str>>; 8],
) -> Result<AuditFilter, Problem> {
    let text = |value: Option<Cow<'_, str>>| value.map(Cow::into_owned).filter(|text| !text.is_empty());
    let event = text(event);
    if let Some(event) = event.as_deref().filter(|event| !CALL_EVENTS.contains(event)) {
        let detail =
            format!("The query parameter `event` must be one of {}, not `{event}`.", CALL_EVENTS.join(", "));
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    }
    let principal = match (text(principal), visible_to(request)?) {
        (None, own) => own,
        (Some(id), None) => Some(Principal { id, org: text(org), roles: Vec::new() }.key()),
        (Some(_), Some(_)) => {
            let detail = "The query parameter `principal` needs the role admin.";
            return Err(Problem::new(Kind::FORBIDDEN, detail));
        }
    };
    let time = |name: &str, value: Option<Cow<'_, str>>| {
        let text = value.filter(|text| !text.is_empty());
        let parsed = text.as_deref().map(|text| number(name, Some(text), 0, i64::MAX as u64)).transpose();
        parsed.map(|time| time.map(u64::cast_signed))
    };
    Ok(AuditFilter {
        calls_only: true,
        event,
        tool: text(tool),
        outcome: text(outcome),
        session: text(session),
        principal,
        from: time("from", from)?,
        until: time("until", until)?,
        ..AuditFilter::default()
    })
}

/// The key of the only principal whose calls the caller may see; `None`: all.
pub(crate) fn visible_to(request: &ApiRequest<'_>) -> Result<Option<String>, Problem> {
    let principal = request.principal()?;
    Ok((!request.is_admin() && !request.is_local_operator()).then(|| principal.key()))
}

/// One call: `GET /v1/calls/{executionId}?sessionId=…`.
pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let [session] = request.query(["sessionId"])?;
    let Some(session) = session else {
        let detail = "Execution ids are unique within a session: add the query parameter `sessionId`.";
        return Err(Problem::new(Kind::BAD_REQUEST, detail));
    };
    let history = find(&request, &session, request.parameter).await?;
    Ok(json::response(&history_to_json(&history)))
}

/// A call that the caller may see.
pub(crate) async fn find(
    request: &ApiRequest<'_>,
    session: &str,
    execution: &str,
) -> Result<CallHistory, Problem> {
    let own = visible_to(request)?;
    let history = request.app.orchestrator.call_history(session, execution).await?;
    let is_visible = |history: &CallHistory| {
        let mut entries = history.entries.iter();
        own.is_none() || entries.any(|found| found.entry.principal_key() == own)
    };
    history.filter(is_visible).ok_or_else(|| Problem::not_found("Call", execution))
}

fn history_to_json(history: &CallHistory) -> Value {
    let CallHistory { entries, nested, is_truncated, args, envelope, source } = history;
    let args: Option<Value> = args.as_ref().and_then(|args| serde_json::from_str(args).ok());
    json!({
        "args": args,
        "envelope": envelope.as_deref(),
        "record": match source {
            RecordSource::Stored => "stored",
            RecordSource::Unsettled => "unsettled",
            RecordSource::Memory => "memory",
            RecordSource::Gone => "gone",
        },
        "entries": entries.iter().map(to_json).collect::<Vec<_>>(),
        "nested": nested.iter().map(to_json).collect::<Vec<_>>(),
        "isTruncated": is_truncated,
    })
}

fn to_json(NumberedEntry { number, entry }: &NumberedEntry) -> Value {
    let mut call = entry_to_json(entry);
    call["number"] = (*number).into();
    call
}

/// A call as it is listed.
pub(crate) fn entry_to_json(entry: &AuditEntry) -> Value {
    let steps = entry.steps.iter().map(|(step, micros)| json!({ "step": step.as_str(), "micros": micros }));
    json!({
        "at": entry.at,
        "event": entry.event,
        "sessionId": entry.session,
        "clientId": entry.client_id,
        "principal": entry.principal,
        "org": entry.org,
        "tool": entry.tool,
        "toolVersion": entry.tool_version,
        "toolsVersion": entry.registry_version,
        "executionId": entry.execution_id,
        "parent": entry.parent,
        "outcome": entry.outcome,
        "durationMs": entry.duration_ms,
        "intents": entry.intents,
        "steps": steps.collect::<Vec<_>>(),
        "data": entry.data,
    })
}

/// `GET /v1/call-events`: the calls of this process as they end, and the answers to confirmation requests, as
/// server-sent events.
pub(crate) async fn stream(request: ApiRequest<'_>) -> ApiResult {
    let [] = request.query([])?;
    let visible_to = visible_to(&request)?;
    let App { streams, options, .. } = &**request.app;
    let counted = streams.open(request.principal()?, None, &options.limits)?;
    let (events, chunks) = chunk_queue::channel();
    // Subscribed before the response, so that no call after it is missed.
    let calls = request.app.orchestrator.watch_calls();
    let app = Arc::clone(request.app);
    tokio::spawn(async move { send_calls(&app, visible_to.as_deref(), &events, calls).await });
    let response = body::stream("text/event-stream", chunks);
    let mut response = response.map(|body| body::end_with(body, pending(), counted));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Sends calls and heartbeats until the client disconnects or the server shuts down.
async fn send_calls(
    app: &App,
    visible_to: Option<&str>,
    events: &ChunkSender,
    mut calls: broadcast::Receiver<Arc<AuditEntry>>,
) {
    let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
    loop {
        let chunk = tokio::select! {
            _ = heartbeat.tick() => Bytes::from_static(b": still here\n\n"),
            () = app.shutdown_requested() => return,
            () = events.closed() => return,
            call = calls.recv() => match call {
                Ok(entry) if visible_to.is_none_or(|own| entry.principal_key().as_deref() == Some(own)) => {
                    let is_call = CALL_EVENTS.contains(&entry.event.as_str());
                    event(if is_call { "call" } else { "answer" }, &entry_to_json(&entry))
                }
                Ok(_) => continue,
                Err(RecvError::Lagged(missed)) => event("lagged", &json!({ "missed": missed })),
                Err(RecvError::Closed) => return,
            },
        };
        if events.send(chunk).await.is_err() {
            return;
        }
    }
}

/// JSON text has no line breaks, so the data is one line.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

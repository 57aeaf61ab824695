//! `/v1/tasks`: the calls that run in the background, their results, and their events. An admin sees all, everyone else
//! those of their own sessions.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serde_json::{Value, json};
use toolwright_contract::Envelope;
use toolwright_orchestrator::store::{TaskQuery, TaskRecord, TaskScope};

use super::sessions::{EmptyBody, parse_place};
use crate::app::App;
use crate::body;
use crate::chunk_queue::{self, ChunkSender};
use crate::json;
use crate::problem::Problem;
use crate::query::number;
use crate::request::{ApiRequest, ApiResult};

const DEFAULT_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;
/// Keeps proxies from closing the connection, and detects clients that are gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// A page of the tasks, newest first.
pub(crate) async fn list(request: ApiRequest<'_>) -> ApiResult {
    let [session, before, limit] = request.query(["sessionId", "before", "limit"])?;
    if let Some(session) = session.as_deref().filter(|_| !sees_all(&request)) {
        request.own_session(session).await?;
    }
    let principal = request.principal()?.key();
    let scope = match session.as_deref() {
        Some(session) => TaskScope::Session(session),
        None if sees_all(&request) => TaskScope::All,
        None => TaskScope::Principal(&principal),
    };
    let before = before.as_deref().map(parse_place).transpose()?;
    let limit = number("limit", limit.as_deref(), DEFAULT_LIMIT, MAX_LIMIT)?.max(1);
    let query = TaskQuery { scope, before, limit: limit as usize };
    let page = request.app.orchestrator.task_page(query).await?;
    let tasks: Vec<Value> = page.tasks.iter().map(|task| to_json(task, None)).collect();
    let next = page.next.map(|(at, id)| format!("{at}.{id}"));
    Ok(json::response(&json!({ "tasks": tasks, "next": next })))
}

fn sees_all(request: &ApiRequest<'_>) -> bool {
    request.is_admin() || request.is_local_operator()
}

/// One task, with its envelope once it has ended.
pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let task = find(&request).await?;
    let envelope = request.app.orchestrator.task_envelope(&task).await?;
    Ok(json::response(&to_json(&task, envelope.as_deref())))
}

/// Asks for the end of a task. One that has ended stays as it is.
pub(crate) async fn cancel(mut request: ApiRequest<'_>) -> ApiResult {
    let EmptyBody {} = request.read_json(&[]).await?;
    let task = find(&request).await?;
    let orchestrator = &request.app.orchestrator;
    let task = orchestrator.cancel_task(&task.id).await?.unwrap_or(task);
    let envelope = orchestrator.task_envelope(&task).await?;
    Ok(json::response(&to_json(&task, envelope.as_deref())))
}

/// Server-sent events: `task` whenever the task has changed. The stream ends with the task.
pub(crate) async fn stream(request: ApiRequest<'_>) -> ApiResult {
    let task = find(&request).await?;
    let seen = last_event_id(&request);
    if task.has_ended() && seen.is_some_and(|seen| seen >= task.revision) {
        // Tells the client not to connect again.
        let mut response = body::response("text/event-stream", Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let App { streams, options, .. } = &**request.app;
    let counted = streams.open(request.principal()?, None, &options.limits)?;
    let (events, chunks) = chunk_queue::channel();
    let app = Arc::clone(request.app);
    tokio::spawn(async move { send_events(&app, &task.id, seen, &events).await });
    let response = body::stream("text/event-stream", chunks);
    let mut response = response.map(|body| body::end_with(body, pending(), counted));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The revision that the client has seen last.
fn last_event_id(request: &ApiRequest<'_>) -> Option<u64> {
    request.head.headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

async fn send_events(app: &App, id: &str, mut seen: Option<u64>, events: &ChunkSender) {
    let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
    heartbeat.tick().await;
    loop {
        // Subscribed before the record is read, so that no change is missed.
        let changes = app.orchestrator.task_changes(id);
        let task = match app.orchestrator.task(id).await {
            Ok(Some(task)) => task,
            Ok(None) => return,
            Err(error) => return tracing::warn!("could not read a task for its events: {error}"),
        };
        if seen.is_none_or(|seen| task.revision > seen) {
            let envelope = app.orchestrator.task_envelope(&task).await.ok().flatten();
            let data = to_json(&task, envelope.as_deref());
            let chunk = Bytes::from(format!("event: task\nid: {}\ndata: {data}\n\n", task.revision));
            if events.send(chunk).await.is_err() {
                return;
            }
            seen = Some(task.revision);
        }
        if task.has_ended() {
            return;
        }
        tokio::select! {
            () = app.orchestrator.wait_for_task_change(changes) => {}
            () = app.shutdown_requested() => return,
            () = events.closed() => return,
            _ = heartbeat.tick() => {
                if events.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The task that the path names, if the caller may see it.
async fn find(request: &ApiRequest<'_>) -> Result<Arc<TaskRecord>, Problem> {
    let unknown = || Problem::not_found("Task", request.parameter);
    let task = request.app.orchestrator.task(request.parameter).await?.ok_or_else(unknown)?;
    if !sees_all(request) {
        request.own_session(&task.session).await.map_err(|_| unknown())?;
    }
    Ok(task)
}

/// A task, with its envelope if it has ended and its record is there.
pub fn to_json(task: &TaskRecord, envelope: Option<&Envelope>) -> Value {
    json!({
        "taskId": task.id,
        "sessionId": task.session,
        "executionId": task.call,
        "tool": task.tool,
        "toolVersion": task.tool_version,
        "args": task.shown_args(),
        "status": task.status,
        "progress": task.progress,
        "message": task.message,
        "cancelRequested": task.is_cancel_requested,
        "createdAt": task.created_at,
        "updatedAt": task.updated_at,
        "endedAt": task.ended_at,
        "envelope": envelope,
    })
}

//! Spans of calls for an OpenTelemetry collector: OTLP over HTTP in its JSON form, in groups, behind the calls. A collector
//! that is slow or gone costs spans, never calls.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolwright_orchestrator::observe::{FinishedCall, Observer};
use toolwright_registry::hex;

use crate::client;

/// Spans that wait at most; more are dropped, and counted.
const ROOM: usize = 4096;
/// Of one request.
const GROUP: usize = 512;
const EVERY: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans go.
#[derive(Clone)]
pub struct Collector {
    /// Such as `http://localhost:4318`.
    pub endpoint: String,
    /// What this server is called there.
    pub service: String,
    /// Sent with every request; may hold secrets.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Turns calls that have ended into spans, and sends them.
pub struct Exporter {
    sender: mpsc::Sender<Message>,
    dropped: AtomicU64,
}

enum Message {
    Span(Box<Value>),
    /// Answered when all that came before it has been sent, or could not be.
    Flush(oneshot::Sender<()>),
}

impl fmt::Debug for Exporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exporter").finish_non_exhaustive()
    }
}

impl Exporter {
    /// Starts to send, on the present tokio runtime.
    pub fn start(collector: Collector) -> Result<Arc<Self>, String> {
        let client = client::build(TIMEOUT)?;
        let mut request = client.post(format!("{}/v1/traces", collector.endpoint.trim_end_matches('/')));
        for (name, value) in &collector.headers {
            request = request.header(name, value);
        }
        let request = request.header("content-type", "application/json");
        request.try_clone().map(|request| request.build()).transpose().map_err(|error| {
            format!("the collector's address or headers cannot be used: {}", error.without_url())
        })?;
        let (sender, receiver) = mpsc::channel(ROOM);
        tokio::spawn(send(request, collector.service, receiver));
        Ok(Arc::new(Self { sender, dropped: AtomicU64::new(0) }))
    }

    /// Sends what waits.
    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).await.is_ok() {
            // The task is gone with the runtime, if it does not answer.
            let _ = sent.await;
        }
    }
}

impl Observer for Exporter {
    fn finished(&self, call: &FinishedCall<'_>) {
        if self.sender.try_send(Message::Span(Box::new(span(call)))).is_err()
            && self.dropped.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000)
        {
            tracing::warn!("spans are dropped: the collector does not keep up");
        }
    }
}

/// By OpenTelemetry's conventions for generative AI: one span `execute_tool` a call.
fn span(call: &FinishedCall<'_>) -> Value {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let mut attributes = vec![
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", call.tool),
        text("gen_ai.tool.type", "function"),
        text("gen_ai.tool.call.id", call.execution_id),
        text("gen_ai.conversation.id", call.session),
        text("toolwright.mode", call.mode.as_str()),
        text("toolwright.registry.version", call.registry_version),
        text("toolwright.end", call.end),
    ];
    attributes.extend(call.tool_version.map(|version| text("toolwright.tool.version", version)));
    attributes.extend(call.error.map(|kind| text("error.type", kind.as_str())));
    let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut span = json!({
        "traceId": hex(&call.span.own.id),
        "spanId": hex(&call.span.own.span),
        "name": format!("execute_tool {}", call.tool),
        "kind": 1,
        "startTimeUnixNano": ended.saturating_sub(call.elapsed).as_nanos().to_string(),
        "endTimeUnixNano": ended.as_nanos().to_string(),
        "attributes": attributes,
        "status": { "code": if call.error.is_some() { 2 } else { 0 } },
    });
    if let Some(parent) = call.span.parent {
        span["parentSpanId"] = hex(&parent).into();
    }
    span
}

async fn send(request: reqwest::RequestBuilder, service: String, mut receiver: mpsc::Receiver<Message>) {
    let mut group = Vec::new();
    let mut due = tokio::time::interval(EVERY);
    loop {
        let message = tokio::select! {
            message = receiver.recv() => message,
            _ = due.tick() => {
                post(&request, &service, &mut group).await;
                continue;
            }
        };
        match message {
            Some(Message::Span(span)) => {
                group.push(*span);
                if group.len() >= GROUP {
                    post(&request, &service, &mut group).await;
                }
            }
            Some(Message::Flush(done)) => {
                post(&request, &service, &mut group).await;
                // Whoever asked may have gone.
                let _ = done.send(());
            }
            None => return post(&request, &service, &mut group).await,
        }
    }
}

async fn post(request: &reqwest::RequestBuilder, service: &str, group: &mut Vec<Value>) {
    if group.is_empty() {
        return;
    }
    let spans = std::mem::take(group);
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": service } }] });
    let scope = json!({ "name": "toolwright", "version": env!("CARGO_PKG_VERSION") });
    let body = json!({ "resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] });
    let Some(request) = request.try_clone() else { return };
    let sent = request.body(body.to_string()).send().await.and_then(reqwest::Response::error_for_status);
    if let Err(error) = sent {
        tracing::warn!("spans could not be sent to the collector: {}", error.without_url());
    }
}

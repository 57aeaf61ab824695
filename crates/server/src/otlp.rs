//! Exports a span per call to an OpenTelemetry collector: OTLP over HTTP as JSON, in batches, in the background. A
//! collector that is slow or down costs spans, never calls.

#![expect(clippy::disallowed_methods, reason = "the time of a span")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use toolwright_agent::{AgentObserver, FinishedRequest, FinishedTurn, Usage};
use toolwright_orchestrator::spans::{FinishedCall, Observer, Span};
use toolwright_registry::hex;

use crate::http_client;

/// Spans that may be queued; further ones are dropped and counted.
const QUEUE_CAPACITY: usize = 4096;
const MAX_BATCH: usize = 512;
const EXPORT_INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The collector that receives the spans.
#[derive(Clone)]
pub struct Collector {
    /// The base URL, such as `http://localhost:4318`.
    pub endpoint: String,
    /// `service.name` of the spans.
    pub service: String,
    /// Headers of every request; may contain secrets.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Turns finished calls into spans and sends them.
#[derive(Debug)]
pub struct Exporter {
    sender: mpsc::Sender<Message>,
    dropped: AtomicU64,
}

enum Message {
    Span(Box<Value>),
    /// Acknowledged when all items queued before it were sent or dropped.
    Flush(oneshot::Sender<()>),
}

impl Exporter {
    /// Starts the export task on the current tokio runtime.
    pub fn start(collector: Collector) -> Result<Arc<Self>, String> {
        let client = http_client::build(TIMEOUT)?;
        let mut request = client.post(format!("{}/v1/traces", collector.endpoint.trim_end_matches('/')));
        for (name, value) in &collector.headers {
            request = request.header(name, value);
        }
        let request = request.header("content-type", "application/json");
        request.try_clone().map(|request| request.build()).transpose().map_err(|error| {
            format!("the collector's endpoint or headers are invalid: {}", error.without_url())
        })?;
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(export(request, collector.service, receiver));
        Ok(Arc::new(Self { sender, dropped: AtomicU64::new(0) }))
    }

    /// Sends everything that is queued.
    pub async fn flush(&self) {
        let (done, sent) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).await.is_ok() {
            // Fails only when the task ended with its runtime.
            let _ = sent.await;
        }
    }
}

impl Exporter {
    fn queue(&self, span: Value) {
        if self.sender.try_send(Message::Span(Box::new(span))).is_err()
            && self.dropped.fetch_add(1, Ordering::Relaxed).is_multiple_of(1000)
        {
            tracing::warn!("dropping spans: the collector does not keep up");
        }
    }
}

impl Observer for Exporter {
    fn finished(&self, call: &FinishedCall<'_>) {
        self.queue(tool_span(call));
    }
}

impl AgentObserver for Exporter {
    fn turn_finished(&self, turn: &FinishedTurn<'_>) {
        self.queue(turn_span(turn));
    }

    fn request_finished(&self, request: &FinishedRequest<'_>) {
        self.queue(request_span(request));
    }
}

/// The fields of every span.
struct SpanData {
    span: Span,
    name: String,
    /// 1: internal; 3: the client of another service.
    kind: u8,
    elapsed: Duration,
    is_error: bool,
    attributes: Vec<Value>,
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn usage_attributes(usage: Usage) -> [Value; 2] {
    [
        number("gen_ai.usage.input_tokens", usage.input_tokens),
        number("gen_ai.usage.output_tokens", usage.output_tokens),
    ]
}

/// One `invoke_agent` span per run of a turn.
fn turn_span(turn: &FinishedTurn<'_>) -> Value {
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.provider.name", turn.provider),
        text("gen_ai.request.model", turn.model),
        text("gen_ai.conversation.id", turn.session),
        text("toolwright.turn", turn.turn),
        text("toolwright.outcome", turn.outcome),
    ];
    attributes.extend(usage_attributes(turn.usage));
    let is_error = turn.outcome == "failed";
    let (span, elapsed) = (turn.span, turn.elapsed);
    encode(SpanData {
        span,
        name: "invoke_agent toolwright".to_owned(),
        kind: 1,
        elapsed,
        is_error,
        attributes,
    })
}

/// One `chat` span per request to the model.
fn request_span(request: &FinishedRequest<'_>) -> Value {
    let finish = serde_json::to_value(request.finish).unwrap_or_default();
    let reasons = json!({ "values": [{ "stringValue": finish }] });
    let mut attributes = vec![
        text("gen_ai.operation.name", "chat"),
        text("gen_ai.provider.name", request.provider),
        text("gen_ai.request.model", request.model),
        text("gen_ai.conversation.id", request.session),
        json!({ "key": "gen_ai.response.finish_reasons", "value": { "arrayValue": reasons } }),
    ];
    attributes.extend(request.usage.into_iter().flat_map(usage_attributes));
    attributes.extend(request.error.map(|kind| text("error.type", kind.as_str())));
    attributes.extend(request.time_to_first_token.map(|time| {
        let seconds = json!({ "doubleValue": time.as_secs_f64() });
        json!({ "key": "gen_ai.response.time_to_first_chunk", "value": seconds })
    }));
    let (span, elapsed, is_error) = (request.span, request.elapsed, request.error.is_some());
    encode(SpanData { span, name: format!("chat {}", request.model), kind: 3, elapsed, is_error, attributes })
}

/// One `execute_tool` span per call, by OpenTelemetry's conventions for generative AI.
fn tool_span(call: &FinishedCall<'_>) -> Value {
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
    let (span, elapsed, is_error) = (call.span, call.elapsed, call.error.is_some());
    encode(SpanData {
        span,
        name: format!("execute_tool {}", call.tool),
        kind: 1,
        elapsed,
        is_error,
        attributes,
    })
}

/// A span that ends now.
fn encode(data: SpanData) -> Value {
    let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut span = json!({
        "traceId": hex(&data.span.own.id),
        "spanId": hex(&data.span.own.span),
        "name": data.name,
        "kind": data.kind,
        "startTimeUnixNano": ended.saturating_sub(data.elapsed).as_nanos().to_string(),
        "endTimeUnixNano": ended.as_nanos().to_string(),
        "attributes": data.attributes,
        "status": { "code": if data.is_error { 2 } else { 0 } },
    });
    if let Some(parent) = data.span.parent {
        span["parentSpanId"] = hex(&parent).into();
    }
    span
}

async fn export(request: reqwest::RequestBuilder, service: String, mut receiver: mpsc::Receiver<Message>) {
    let mut batch = Vec::new();
    let mut due = tokio::time::interval(EXPORT_INTERVAL);
    let mut is_open = true;
    while is_open {
        let mut flushed = None;
        tokio::select! {
            message = receiver.recv() => match message {
                Some(Message::Span(span)) => {
                    batch.push(*span);
                    if batch.len() < MAX_BATCH {
                        continue;
                    }
                }
                Some(Message::Flush(done)) => flushed = Some(done),
                None => is_open = false,
            },
            _ = due.tick() => {}
        }
        post(&request, &service, &mut batch).await;
        // The caller of `flush` may be gone.
        let _ = flushed.map(|done| done.send(()));
    }
}

async fn post(request: &reqwest::RequestBuilder, service: &str, batch: &mut Vec<Value>) {
    if batch.is_empty() {
        return;
    }
    let spans = std::mem::take(batch);
    let resource = json!({ "attributes": [{ "key": "service.name", "value": { "stringValue": service } }] });
    let scope = json!({ "name": "toolwright", "version": env!("CARGO_PKG_VERSION") });
    let body = json!({ "resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] });
    let Some(request) = request.try_clone() else { return };
    let sent = request.body(body.to_string()).send().await.and_then(reqwest::Response::error_for_status);
    if let Err(error) = sent {
        tracing::warn!("could not send spans to the collector: {}", error.without_url());
    }
}

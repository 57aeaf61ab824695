//! `GET /v1/sessions/{sessionId}/events`: server-sent events of a session: envelopes of calls that waited for approval,
//! messages of tools, progress.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolwright_orchestrator::DeferredResult;
use toolwright_orchestrator::capabilities::{CapabilityError, Client, SendFuture};

use crate::app::App;
use crate::body;
use crate::chunk_queue::{self, ChunkSender};
use crate::request::{ApiRequest, ApiResult};

/// Keeps proxies from closing the connection, and detects clients that are gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) async fn stream(request: ApiRequest<'_>) -> ApiResult {
    let session = request.own_session(request.parameter).await?;
    let App { streams, options, .. } = &**request.app;
    let counted = streams.open(request.principal()?, Some(&session.id), &options.limits)?;
    let (events, chunks) = chunk_queue::channel();
    // Subscribed before the response, so that no delivery after it is missed.
    let deliveries = request.app.orchestrator.deferred_results_for(&session.id);
    let client: Arc<dyn Client> = Arc::new(EventClient(events.clone()));
    request.app.orchestrator.attach(&session.id, Arc::clone(&client));
    let app = Arc::clone(request.app);
    tokio::spawn(async move {
        send_events(&app, &session.id, &events, deliveries).await;
        app.orchestrator.detach_client(&session.id, &client);
    });
    let response = body::stream("text/event-stream", chunks);
    let mut response = response.map(|body| body::end_with(body, pending(), counted));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Sends deliveries and heartbeats until the client disconnects or the server shuts down.
async fn send_events(
    app: &App,
    session: &str,
    events: &ChunkSender,
    mut deliveries: broadcast::Receiver<DeferredResult>,
) {
    let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
    loop {
        let chunk = tokio::select! {
            _ = heartbeat.tick() => Bytes::from_static(b": still here\n\n"),
            () = app.shutdown_requested() => return,
            () = events.closed() => return,
            delivery = deliveries.recv() => match delivery {
                Ok(delivery) if delivery.session == session => event("delivery", &json!({
                    "executionId": delivery.execution_id, "envelope": &*delivery.envelope })),
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

/// The session's client, as handlers see it. When the queue is full, a message fails and progress is dropped.
#[derive(Debug)]
struct EventClient(ChunkSender);

impl Client for EventClient {
    fn send(&self, message: Value) -> SendFuture {
        let sent = self.0.try_send(event("message", &message));
        Box::pin(ready(
            sent.map_err(|_| CapabilityError::new("CLOSED", "this session's client is not connected")),
        ))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        // Progress may be lost.
        let _ = self.0.try_send(event("progress", &json!({ "fraction": fraction, "message": message })));
    }
}

/// JSON text has no line breaks, so the data is one line.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

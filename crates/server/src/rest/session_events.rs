//! `GET /v1/sessions/{sessionId}/events`: server-sent events of a session: envelopes of calls that waited for approval,
//! messages of tools, progress.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use toolwright_orchestrator::capabilities::{CapabilityError, Client, SendFuture};

use crate::app::App;
use crate::body::Body;
use crate::request::{ApiRequest, ApiResult};

/// Events that may be queued for a slow client. When the queue is full, a message fails and progress is dropped.
const QUEUE_CAPACITY: usize = 64;
/// Keeps proxies from closing the connection, and detects clients that are gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

pub(crate) async fn stream(request: ApiRequest<'_>) -> ApiResult {
    let session = request.own_session(request.parameter).await?;
    let (events, chunks) = mpsc::channel(QUEUE_CAPACITY);
    // Subscribed before the response, so that no delivery after it is missed.
    let deliveries = request.app.orchestrator.deferred_results_for(&session.id);
    let client: Arc<dyn Client> = Arc::new(EventClient(events.clone()));
    request.app.orchestrator.attach(&session.id, Arc::clone(&client));
    let (app, session) = (Arc::clone(request.app), session.id.clone());
    let stream = EventStream { app, session, client, events };
    tokio::spawn(stream.run(deliveries));
    let mut response = Response::new(Body::Stream(chunks));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct EventStream {
    app: Arc<App>,
    session: String,
    client: Arc<dyn Client>,
    events: mpsc::Sender<Bytes>,
}

impl EventStream {
    async fn run(
        self,
        mut deliveries: tokio::sync::broadcast::Receiver<toolwright_orchestrator::DeferredResult>,
    ) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        loop {
            let chunk = tokio::select! {
                _ = heartbeat.tick() => Bytes::from_static(b": still here\n\n"),
                () = self.app.shutdown_requested() => break,
                () = self.events.closed() => break,
                delivery = deliveries.recv() => match delivery {
                    Ok(delivery) if delivery.session == self.session => event("delivery", &json!({
                        "executionId": delivery.execution_id, "envelope": &*delivery.envelope })),
                    Ok(_) => continue,
                    Err(RecvError::Lagged(missed)) => event("lagged", &json!({ "missed": missed })),
                    Err(RecvError::Closed) => break,
                },
            };
            if self.events.send(chunk).await.is_err() {
                break;
            }
        }
        // Another stream of the session may have attached its client meanwhile.
        self.app.orchestrator.detach_client(&self.session, &self.client);
    }
}

/// The session's client, as handlers see it.
#[derive(Debug)]
struct EventClient(mpsc::Sender<Bytes>);

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

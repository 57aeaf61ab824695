//! `GET /v1/sessions/{sessionId}/events`: what reaches a session without being asked for, as server-sent events: the
//! envelopes of calls that waited for a person, messages of tools, progress.

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
use crate::dispatch::{Answer, Asked};
use crate::rest::sessions;

/// Events that a slow client may be behind; one that is further behind is cut off, or its tools are told.
const WAITING: usize = 64;
/// So that proxies do not take the connection for dead, and that a client that is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) async fn stream(asked: Asked<'_>) -> Answer {
    let session = sessions::own(&asked, asked.parameter).await?;
    let (events, pieces) = mpsc::channel(WAITING);
    // Subscribed before it is answered: what is delivered from now on is not missed.
    let deliveries = asked.app.orchestrator.deferred_results_for(&session.id);
    let listener: Arc<dyn Client> = Arc::new(Listener(events.clone()));
    asked.app.orchestrator.attach(&session.id, Arc::clone(&listener));
    let (app, session) = (Arc::clone(asked.app), session.id.clone());
    let stream = Stream { app, session, listener, events };
    tokio::spawn(stream.run(deliveries));
    let mut response = Response::new(Body::Stream(pieces));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct Stream {
    app: Arc<App>,
    session: String,
    listener: Arc<dyn Client>,
    events: mpsc::Sender<Bytes>,
}

impl Stream {
    async fn run(
        self,
        mut deliveries: tokio::sync::broadcast::Receiver<toolwright_orchestrator::DeferredResult>,
    ) {
        let mut heartbeat = tokio::time::interval(HEARTBEAT);
        loop {
            let piece = tokio::select! {
                _ = heartbeat.tick() => Bytes::from_static(b": still here\n\n"),
                () = self.app.stopped() => break,
                () = self.events.closed() => break,
                delivery = deliveries.recv() => match delivery {
                    Ok(delivery) if delivery.session == self.session => event("delivery", &json!({
                        "executionId": delivery.execution_id, "envelope": &*delivery.envelope })),
                    Ok(_) => continue,
                    Err(RecvError::Lagged(missed)) => event("lagged", &json!({ "missed": missed })),
                    Err(RecvError::Closed) => break,
                },
            };
            if self.events.send(piece).await.is_err() {
                break;
            }
        }
        // Not the one that has taken its place meanwhile.
        self.app.orchestrator.detach_client(&self.session, &self.listener);
    }
}

/// The session's client, as tools see it.
#[derive(Debug)]
struct Listener(mpsc::Sender<Bytes>);

impl Client for Listener {
    fn send(&self, message: Value) -> SendFuture {
        let sent = self.0.try_send(event("message", &message));
        Box::pin(ready(
            sent.map_err(|_| CapabilityError::new("CLOSED", "this session's client does not listen")),
        ))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        // Progress that cannot be shown is no loss.
        let _ = self.0.try_send(event("progress", &json!({ "fraction": fraction, "message": message })));
    }
}

/// JSON has no line breaks of its own, so the data is one line.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

//! From the events of a turn to a response: streamed as they come, or whole at the end. A wire is an [`Encoder`].

use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use toolwright_agent::{Event, EventBody, EventStream, TurnOutcome};
use toolwright_orchestrator::Orchestrator;

use super::session::Conversation;
use crate::body::{self, Body};
use crate::chunk_queue::{self, ChunkSender};
use crate::open_streams::OpenStream;
use crate::problem::{Kind, Problem};
use crate::request::ApiRequest;

/// Keeps proxies from closing the connection, and detects clients that are gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Proxies that would collect a response before they pass it on.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// The session that a chat is stored as.
const X_SESSION: HeaderName = HeaderName::from_static("x-toolwright-session");

/// How long a response waits for the model to begin, so that a model that fails at once is an error of the request.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Writes the events of one turn in the form of a wire.
pub(crate) trait Encoder: Send + 'static {
    /// The media type of a streamed response.
    const CONTENT_TYPE: &'static str = "text/event-stream";
    /// A message without content, sent while nothing happens; clients skip it.
    const HEARTBEAT: &'static str = ": still here\n\n";

    /// Whether the event belongs to a later response.
    fn is_beyond(&self, event: &Event) -> bool;

    /// Writes an event.
    fn event(&mut self, event: &Event, out: &mut String);

    /// Writes the end of the response: all events are written, and the turn is stored. If the log could not be read to
    /// its end, `failure` says why.
    fn end(&mut self, failure: Option<&str>, out: &mut String);
}

/// Writes `data: {…}`, one event of a stream. JSON text has no line breaks, so the data is one line.
pub(super) fn write_data(out: &mut String, data: &Value) {
    out.push_str("data: ");
    out.push_str(&data.to_string());
    out.push_str("\n\n");
}

/// Writes the position in the log after the last event. An event without data only sets the id that the client sends
/// when it connects again; of every other event, clients may expect that it is one line of data.
pub(super) fn write_id(out: &mut String, position: u64) {
    if out.ends_with("\n\n") {
        out.push_str(&format!("id: {position}\n\n"));
    }
}

/// The position that a client which connects again has read last.
pub(super) fn last_event_id(request: &ApiRequest<'_>) -> Result<Option<u64>, Problem> {
    let Some(header) = request.head.headers.get("last-event-id") else { return Ok(None) };
    let position = header.to_str().ok().and_then(|text| text.trim().parse().ok());
    let detail = "`last-event-id` must be the id of an event of this chat: a whole number.";
    position.map(Some).ok_or_else(|| Problem::new(Kind::BAD_REQUEST, detail))
}

/// Encodes all events, and returns the text.
pub(super) async fn encode_all(events: &mut Events, encoder: &mut impl Encoder) -> String {
    let mut out = String::new();
    let failure = loop {
        match events.next().await {
            Ok(Some(event)) if !encoder.is_beyond(&event) => encoder.event(&event, &mut out),
            Ok(_) => break None,
            Err(failure) => break Some(failure),
        }
    };
    encoder.end(failure, &mut out);
    out
}

/// Counts the stream of a response. A route that starts a turn takes it before that: a client that is refused for its
/// many streams may send the request again, and no turn has begun.
pub(super) fn open_stream(request: &ApiRequest<'_>, session: Option<&str>) -> Result<OpenStream, Problem> {
    request.app.streams.open(request.principal()?, session, &request.app.options.limits)
}

/// A response that streams the events as they come. The turn runs on when its client disconnects.
pub(super) fn stream<E: Encoder>(
    request: &ApiRequest<'_>,
    conversation: &Conversation,
    counted: OpenStream,
    events: Events,
    encoder: E,
) -> Response<Body> {
    let (sender, chunks) = chunk_queue::channel();
    let (orchestrator, temporary) = (request.app.orchestrator.clone(), conversation.clone());
    tokio::spawn(async move {
        if send_events(sender, events, encoder).await == DeliveryState::Whole {
            end_temporary(&orchestrator, &temporary).await;
        }
    });
    let response = body::stream(E::CONTENT_TYPE, chunks);
    let mut response = response.map(|body| body::end_with(body, pending(), counted));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    if let Ok(session) = HeaderValue::from_str(&conversation.session) {
        headers.insert(X_SESSION, session);
    }
    response
}

/// Ends the session of a conversation that its client will not continue.
pub(super) async fn finish(request: &ApiRequest<'_>, conversation: &Conversation) {
    end_temporary(&request.app.orchestrator, conversation).await;
}

/// A session in which a call waits for approval stays.
async fn end_temporary(orchestrator: &Orchestrator, conversation: &Conversation) {
    if !conversation.is_temporary {
        return;
    }
    let ended = match orchestrator.pending_confirmations(Some(&conversation.session)).await {
        Ok(pending) if pending.is_empty() => orchestrator.end_session(&conversation.session).await,
        other => other.map(drop),
    };
    if let Err(error) = ended {
        tracing::warn!(session = conversation.session, "could not end a session: {error}");
    }
}

/// Whether the client has got all of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    Whole,
    Cut,
}

async fn send_events<E: Encoder>(sender: ChunkSender, mut events: Events, mut encoder: E) -> DeliveryState {
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let mut out = String::new();
        let next = tokio::select! {
            biased;
            () = sender.closed() => return DeliveryState::Cut,
            next = events.next() => next,
            _ = heartbeat.tick() => {
                if sender.send(Bytes::from_static(E::HEARTBEAT.as_bytes())).await.is_err() {
                    return DeliveryState::Cut;
                }
                continue;
            }
        };
        let is_over = match next {
            Ok(Some(event)) if !encoder.is_beyond(&event) => {
                encoder.event(&event, &mut out);
                false
            }
            Ok(_) => {
                encoder.end(None, &mut out);
                true
            }
            Err(failure) => {
                encoder.end(Some(failure), &mut out);
                true
            }
        };
        if !out.is_empty() && sender.send(Bytes::from(out)).await.is_err() {
            return DeliveryState::Cut;
        }
        if is_over {
            return DeliveryState::Whole;
        }
    }
}

/// The events of a turn, of which the first may have been read already.
pub(super) struct Events {
    read: std::vec::IntoIter<Event>,
    stream: EventStream,
}

impl Events {
    pub fn new(stream: EventStream) -> Self {
        Self { read: Vec::new().into_iter(), stream }
    }

    /// The next event. The error is for the client.
    pub async fn next(&mut self) -> Result<Option<Event>, &'static str> {
        if let Some(event) = self.read.next() {
            return Ok(Some(event));
        }
        self.stream.next().await.map_err(|error| {
            tracing::error!("could not read a conversation: {error}");
            "The store is unavailable. The turn goes on: load the conversation again."
        })
    }

    /// The next event, which stays the next one.
    pub async fn peek(&mut self) -> Result<Option<&Event>, &'static str> {
        if self.read.as_slice().is_empty()
            && let Some(event) = self.next().await?
        {
            self.read = vec![event].into_iter();
        }
        Ok(self.read.as_slice().first())
    }

    /// Reads until the model has begun to answer, or the turn has ended, for at most `patience`. The outcome, if it has
    /// ended.
    pub async fn wait_for_answer(&mut self, patience: Duration) -> Option<TurnOutcome> {
        let deadline = Instant::now() + patience;
        let mut read = Vec::new();
        let mut outcome = None;
        while let Ok(Ok(Some(event))) = tokio::time::timeout_at(deadline, self.stream.next()).await {
            match &event.body {
                EventBody::TurnStarted { .. }
                | EventBody::StepStarted { .. }
                | EventBody::StepDiscarded { .. }
                | EventBody::StepFinished { .. } => {}
                EventBody::TurnEnded { outcome: ended } => outcome = Some(ended.clone()),
                // After a failure.
                EventBody::TurnResumed => outcome = None,
                _ => {
                    read.push(event);
                    break;
                }
            }
            read.push(event);
        }
        self.read = read.into_iter();
        outcome
    }
}

/// Whether an event comes after the response that has this outcome. A turn that failed may go on.
pub(super) fn is_after(outcome: Option<&TurnOutcome>, event: &Event) -> bool {
    match outcome {
        None => false,
        Some(TurnOutcome::Failed { .. }) => !matches!(event.body, EventBody::TurnResumed),
        Some(_) => true,
    }
}

/// The text for a turn without an outcome: its process has died, or the store is unavailable.
pub(super) const INTERRUPTED: &str = "The turn was interrupted. Send the message again to continue it.";

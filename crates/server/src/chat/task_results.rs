//! `GET /api/chat/{chatId}/stream?follow=tasks`: the results of calls that run in the background. They come after the
//! turn of their call, whose own stream has ended.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use toolwright_agent::{Agent, BackgroundCalls, Error, Event, EventBody, TaskEnds};

use super::encode::{self, write_data, write_id};
use super::log_lines;
use super::session::{Conversation, agent};
use super::ui::tool_output;
use super::ui_routes::{X_UI_STREAM, wants_log};
use crate::app::App;
use crate::body;
use crate::chunk_queue::{self, ChunkSender, NotQueued};
use crate::request::{ApiRequest, ApiResult};

/// Keeps proxies from closing the connection, and detects clients that are gone.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// The form of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultFormat {
    /// Parts of the UI message stream.
    UiParts,
    /// Events of the log, as lines.
    LogLines,
}

/// Streams the results after a position, until no task is open. 204 when there is nothing to wait for: it tells an
/// `EventSource` not to connect again.
pub(super) async fn follow(request: &ApiRequest<'_>, conversation: &Conversation, seen: u64) -> ApiResult {
    let agent = agent(request)?.clone();
    let session = conversation.session.clone();
    let ends = agent.task_ends(&session);
    let calls = agent.background_calls(&session, seen).await?;
    if calls.open_tasks.is_empty() && calls.results.is_empty() {
        return Ok(body::no_content());
    }
    let counted = encode::open_stream(request, Some(&session))?;
    let format =
        if wants_log(&request.head.headers) { ResultFormat::LogLines } else { ResultFormat::UiParts };
    let (sender, chunks) = chunk_queue::channel();
    let stream = ResultStream { app: Arc::clone(request.app), agent, session, ends, seen, format, sender };
    tokio::spawn(stream.run(calls));
    let response = body::stream(format.content_type(), chunks);
    let mut response = response.map(|body| body::end_with(body, pending(), counted));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if format == ResultFormat::UiParts {
        response.headers_mut().insert(X_UI_STREAM, HeaderValue::from_static("v1"));
    }
    Ok(response)
}

impl ResultFormat {
    const fn content_type(self) -> &'static str {
        match self {
            Self::UiParts => "text/event-stream",
            Self::LogLines => log_lines::CONTENT_TYPE,
        }
    }

    const fn heartbeat(self) -> &'static str {
        match self {
            Self::UiParts => ": still here\n\n",
            Self::LogLines => "\n",
        }
    }

    fn write(self, event: Event, out: &mut String) {
        match (self, &event.body) {
            (Self::UiParts, EventBody::ToolFinished { result }) => {
                write_data(out, &tool_output(result));
                write_id(out, event.position);
            }
            (Self::UiParts, _) => {}
            (Self::LogLines, _) => log_lines::write_event(out, event),
        }
    }
}

struct ResultStream {
    app: Arc<App>,
    agent: Agent,
    session: String,
    ends: TaskEnds,
    seen: u64,
    format: ResultFormat,
    sender: ChunkSender,
}

impl ResultStream {
    async fn run(mut self, mut calls: BackgroundCalls) {
        loop {
            let mut out = String::new();
            for event in std::mem::take(&mut calls.results) {
                self.seen = self.seen.max(event.position);
                self.format.write(event, &mut out);
            }
            let is_over = calls.open_tasks.is_empty();
            if is_over && self.format == ResultFormat::UiParts {
                out.push_str("data: [DONE]\n\n");
            }
            if !out.is_empty() && self.sender.send(Bytes::from(out)).await.is_err() {
                return;
            }
            if is_over || self.wait(&calls.open_tasks).await.is_err() {
                return;
            }
            calls = match self.agent.background_calls(&self.session, self.seen).await {
                Ok(calls) => calls,
                Err(error) => return self.fail(&error).await,
            };
        }
    }

    /// Waits until there may be another result. The error says that the stream ends: its client is gone, or the server
    /// stops.
    async fn wait(&mut self, open_tasks: &[String]) -> Result<(), NotQueued> {
        let mut heartbeat = tokio::time::interval(HEARTBEAT_INTERVAL);
        heartbeat.tick().await;
        let end = self.agent.wait_for_task_end(&self.session, open_tasks, &mut self.ends);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return Ok(()),
                () = self.sender.closed() => return Err(NotQueued),
                () = self.app.shutdown_requested() => return Err(NotQueued),
                _ = heartbeat.tick() => {
                    self.sender.send(Bytes::from_static(self.format.heartbeat().as_bytes())).await?;
                }
            }
        }
    }

    async fn fail(&self, error: &Error) {
        tracing::error!("could not read the results of background calls: {error}");
        let text = "The store is unavailable. The tasks go on: load the conversation again.";
        let chunk = match self.format {
            ResultFormat::UiParts => {
                let mut out = String::new();
                write_data(&mut out, &serde_json::json!({ "type": "error", "errorText": text }));
                out
            }
            ResultFormat::LogLines => format!("{}\n", serde_json::json!({ "failure": text })),
        };
        // The client may be gone as well.
        let _ = self.sender.send(Bytes::from(chunk)).await;
    }
}

//! One step of a turn: a request to the model, its streamed response, and the calls in it.

use std::time::Instant;

use serde_json::Value;
use toolwright_contract::{ErrorKind, Failure};
use toolwright_orchestrator::spans::Span;
use toolwright_providers::Call;

use crate::event::{EventBody, FinishReason, ProviderData, ToolCallPart, TurnOutcome, Usage};
use crate::ids;
use crate::log_writer::WriteError;
use crate::metrics::Metrics;
use crate::model::{ModelError, ModelEvent, ModelStream};
use crate::spans::FinishedRequest;
use crate::turn::{LoopControl, SentRequest, TurnRun, failed};

/// Maximum size of the arguments of one call.
const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// Maximum number of calls of one response that run.
const MAX_CALLS: usize = 64;
/// Maximum number of bytes of unreadable arguments that are stored.
const MAX_EXCERPT_BYTES: usize = 1024;

/// A response while it is being read.
#[derive(Default)]
struct Response {
    /// The open part, and whether it is reasoning.
    open: Option<(u32, bool)>,
    next_part: u32,
    calls: Vec<(Call, Option<Value>)>,
    first_token: Option<Instant>,
}

/// How reading a response ended.
enum StepEnd {
    Finished(FinishReason, Option<Usage>),
    Failed(ModelError),
    Cancelled,
}

impl TurnRun {
    /// Sends one request to the model, and records its response.
    pub(crate) async fn ask_model(&mut self) -> Result<LoopControl, WriteError> {
        let (step, next_part) = self.logged().map_or((1, 0), |turn| (turn.steps_begun + 1, turn.next_part));
        let sent = self.sent_ahead.take().unwrap_or_else(|| self.send_request());
        let started = sent.at;
        self.writer.push(EventBody::StepStarted { step, model: self.agent.model.name().to_owned() }).await?;
        let mut response = Response { next_part, ..Response::default() };
        let span = self.span.map(|turn| Span::begin(Some(turn.own)));
        let end = self.stream(sent, &mut response).await?;
        self.report_request(started, span, &response, &end);
        if let Some((part, _)) = response.open {
            self.writer.push(EventBody::PartEnded { part, provider_data: None }).await?;
        }
        let (finish, usage, flow) = match end {
            StepEnd::Finished(finish, usage) => (finish, usage, LoopControl::Continue),
            StepEnd::Failed(error) => (FinishReason::Interrupted, None, LoopControl::End(failed(&error))),
            StepEnd::Cancelled => (FinishReason::Interrupted, None, LoopControl::End(TurnOutcome::Stopped)),
        };
        let mut events = vec![EventBody::StepFinished { step, finish, usage }];
        if matches!(flow, LoopControl::Continue) {
            events.extend(self.record_calls(step, response.calls).await);
        }
        self.writer.commit(events).await?;
        Ok(flow)
    }

    async fn stream(&mut self, sent: SentRequest, response: &mut Response) -> Result<StepEnd, WriteError> {
        let cancelled = self.cancelled.clone();
        let sent = tokio::select! {
            sent = sent.response() => sent,
            () = cancelled => return Ok(StepEnd::Cancelled),
        };
        let mut stream: ModelStream = match sent {
            Ok(stream) => stream,
            Err(error) => return Ok(StepEnd::Failed(error)),
        };
        loop {
            let cancelled = self.cancelled.clone();
            let next = tokio::select! {
                next = stream.next() => next,
                () = cancelled => return Ok(StepEnd::Cancelled),
            };
            match next {
                Ok(Some(ModelEvent::Finished { finish, usage })) => {
                    return Ok(StepEnd::Finished(finish, usage));
                }
                Ok(Some(event)) => {
                    response.first_token.get_or_insert_with(Instant::now);
                    self.read(response, event).await?;
                }
                Ok(None) => return Ok(StepEnd::Finished(FinishReason::Other, None)),
                Err(error) => return Ok(StepEnd::Failed(error)),
            }
        }
    }

    /// Counts a request, and reports its span.
    fn report_request(&self, started: Instant, span: Option<Span>, response: &Response, end: &StepEnd) {
        let (finish, usage, error) = match end {
            StepEnd::Finished(finish, usage) => (*finish, *usage, None),
            StepEnd::Failed(error) => (FinishReason::Interrupted, None, Some(error.kind)),
            StepEnd::Cancelled => (FinishReason::Interrupted, None, None),
        };
        let time_to_first_token = response.first_token.map(|first| first.saturating_duration_since(started));
        self.agent.metrics.count_request(time_to_first_token, usage, error);
        Metrics::count_minute(&self.agent.orchestrator, time_to_first_token, usage);
        if let (Some(observer), Some(span)) = (&self.agent.observer, span) {
            observer.request_finished(&FinishedRequest {
                span,
                session: &self.session.id,
                provider: self.agent.model.provider(),
                model: self.agent.model.name(),
                finish,
                usage,
                error,
                time_to_first_token,
                elapsed: started.elapsed(),
            });
        }
    }

    async fn read(&mut self, response: &mut Response, event: ModelEvent) -> Result<(), WriteError> {
        let (text, is_reasoning) = match event {
            ModelEvent::Text(text) => (text, false),
            ModelEvent::Reasoning(text) => (text, true),
            ModelEvent::PartEnded(data) => return self.end_part(response, data).await,
            ModelEvent::Call { call, provider_data } => {
                response.calls.push((call, provider_data));
                return Ok(());
            }
            ModelEvent::Finished { .. } => return Ok(()),
        };
        let part = match response.open {
            Some((part, open)) if open == is_reasoning => part,
            _ => {
                self.end_part(response, None).await?;
                response.next_part += 1;
                response.next_part - 1
            }
        };
        response.open = Some((part, is_reasoning));
        let body =
            if is_reasoning { EventBody::Reasoning { part, text } } else { EventBody::Text { part, text } };
        self.writer.push(body).await
    }

    async fn end_part(&mut self, response: &mut Response, data: Option<Value>) -> Result<(), WriteError> {
        let Some((part, _)) = response.open.take() else { return Ok(()) };
        let provider_data = data.map(|value| self.provider_data(value));
        self.writer.push(EventBody::PartEnded { part, provider_data }).await
    }

    fn provider_data(&self, value: Value) -> ProviderData {
        ProviderData { provider: self.agent.model.provider().to_owned(), value }
    }

    /// The events of the calls. Calls that cannot run get their result at once.
    async fn record_calls(&mut self, step: u32, calls: Vec<(Call, Option<Value>)>) -> Vec<EventBody> {
        let mut events = Vec::new();
        let mut refused = Vec::new();
        let mut used = std::mem::take(&mut self.writer.conversation.call_ids);
        for (position, (mut call, data)) in calls.into_iter().enumerate() {
            self.toolbox.view.restore(&mut call);
            let own_id = call.id.take().filter(|id| ids::is_usable(id) && !used.contains(id));
            let id = own_id.unwrap_or_else(|| ids::call_id(&self.turn, step, position));
            used.insert(id.clone());
            let (args, failure) = arguments(call.arguments, position);
            let failure = failure.or_else(|| self.toolbox.names.is_empty().then(no_tools));
            let redacted = self.orchestrator.without_secrets(&self.session, &call.name, &args).await;
            let is_redacted = redacted.is_some();
            if is_redacted && failure.is_none() {
                self.secret_args.insert(id.clone(), args.clone());
            }
            let part = ToolCallPart {
                is_client_tool: self.context.is_client_tool(&call.name),
                id,
                tool: call.name,
                args: redacted.unwrap_or(args),
                is_redacted,
            };
            if let Some(failure) = failure {
                refused.push((part.clone(), failure));
            }
            let provider_data = data.map(|value| self.provider_data(value));
            events.push(EventBody::ToolCalled { call: part, provider_data });
        }
        self.writer.conversation.call_ids = used;
        for (part, failure) in refused {
            events.push(self.refuse_call(&part, failure).await);
        }
        events
    }
}

/// The arguments as they are stored, and why the call cannot run.
fn arguments(
    arguments: Result<Value, toolwright_providers::InvalidArguments>,
    position: usize,
) -> (Value, Option<Failure>) {
    let excerpt = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_EXCERPT_BYTES));
        Value::String(text)
    };
    match arguments {
        Err(invalid) => {
            let failure = invalid.failure();
            (excerpt(invalid.text), Some(failure))
        }
        Ok(args) if args.to_string().len() > MAX_ARGUMENT_BYTES => {
            let message = format!("The arguments are longer than {MAX_ARGUMENT_BYTES} bytes.");
            let failure = Failure::new(ErrorKind::Validation, message).suggest("Call the tool with less.");
            (excerpt(args.to_string()), Some(failure))
        }
        Ok(args) if position >= MAX_CALLS => {
            let message = format!("At most {MAX_CALLS} calls of one message are run.");
            let failure = Failure::new(ErrorKind::Permanent, message).suggest("Make fewer calls at a time.");
            (args, Some(failure))
        }
        Ok(args) => (args, None),
    }
}

/// The result of a call in a request without tools, which a model may make all the same.
fn no_tools() -> Failure {
    Failure::new(ErrorKind::Permanent, "This request has no tools.").suggest("Answer without calling a tool.")
}

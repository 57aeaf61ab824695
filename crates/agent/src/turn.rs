//! The turn loop. The log decides on the next action, so that a turn continues in the same way after a crash and
//! after a pause.
//!
//! ```text
//! model → calls through the orchestrator → results → model → … → final answer, a pause, or a limit
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use serde_json::Value;
use tokio::task::JoinSet;
use toolwright_contract::Principal;
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::spans::Span;
use toolwright_orchestrator::store::SessionRecord;

use crate::agent::Inner;
use crate::conversation::LoggedTurn;
use crate::event::{EventBody, FinishReason, InputPart, ToolCallPart, TurnError, TurnOutcome};
use crate::history_limit::trim;
use crate::log_writer::{LogWriter, WriteError};
use crate::message::{Message, ToolPart};
use crate::model::{ModelError, ModelErrorKind, ModelRequest, ModelStream};
use crate::settings::{AgentOptions, ToolChoice};
use crate::spans::FinishedTurn;
use crate::toolbox::Toolbox;
use crate::turn_context::TurnContext;

/// One run of a turn.
pub(crate) struct TurnRun {
    pub agent: Arc<Inner>,
    pub orchestrator: Orchestrator,
    pub options: Arc<AgentOptions>,
    /// With the principal of the current request.
    pub session: Arc<SessionRecord>,
    pub principal: Arc<Principal>,
    pub writer: LogWriter,
    pub turn: Arc<str>,
    pub toolbox: Toolbox,
    pub context: Arc<TurnContext>,
    /// The request for the first step of a new turn. It is sent while the beginning of the turn is written to the
    /// disk; its response is read only after that.
    pub sent_ahead: Option<SentRequest>,
    /// The arguments of calls that the log has without secrets.
    pub secret_args: HashMap<String, Value>,
    pub cancelled: Shared<BoxFuture<'static, ()>>,
    /// Only if there is an observer.
    pub span: Option<Span>,
}

/// A sent request. Dropping it cancels the request.
pub(crate) struct SentRequest {
    pub at: Instant,
    response: JoinSet<Result<ModelStream, ModelError>>,
}

impl SentRequest {
    /// The beginning of the response.
    pub async fn response(mut self) -> Result<ModelStream, ModelError> {
        let failed = || ModelError {
            kind: ModelErrorKind::Unavailable,
            message: "The request to the model failed: the server's log says why.".to_owned(),
        };
        self.response.join_next().await.and_then(Result::ok).unwrap_or_else(|| Err(failed()))
    }
}

/// The next action of the loop.
enum NextAction {
    /// Send a request to the model.
    Model,
    /// The last step is incomplete: repeat it.
    Repeat,
    Calls(Vec<ToolCallPart>),
    End(TurnOutcome),
}

/// Whether the loop goes on.
pub(crate) enum LoopControl {
    Continue,
    End(TurnOutcome),
}

impl TurnRun {
    /// When to cancel: the turn is stopped, or had no listener for the grace time.
    pub fn cancellation(writer: &LogWriter, options: &AgentOptions) -> Shared<BoxFuture<'static, ()>> {
        let (live, grace) = (Arc::clone(&writer.live), options.grace);
        async move { live.cancelled(grace).await }.boxed().shared()
    }

    /// Runs the turn until it ends or pauses, and closes the log.
    pub async fn run(mut self) {
        let started = Instant::now();
        // Tool spans are children of the turn's span.
        let ended = match self.span {
            Some(span) => span.own.scope(self.run_to_end()).await,
            None => self.run_to_end().await,
        };
        self.report(started, ended.as_ref().ok());
        match ended {
            Ok(_) => {}
            Err(WriteError::Lost) => {
                tracing::warn!(session = self.session.id, "another process continues the conversation");
            }
            Err(WriteError::Store(error)) => {
                tracing::error!(session = self.session.id, "a turn cannot be stored, and stops: {error}");
            }
        }
        self.writer.close().await;
    }

    async fn run_to_end(&mut self) -> Result<TurnOutcome, WriteError> {
        let outcome = loop {
            let flow = match self.next() {
                NextAction::End(outcome) => break outcome,
                NextAction::Model => self.ask_model().await?,
                NextAction::Repeat => {
                    let step = self.logged().map_or(0, |turn| turn.steps_begun);
                    self.writer.push(EventBody::StepDiscarded { step }).await?;
                    LoopControl::Continue
                }
                NextAction::Calls(calls) => self.run_calls(calls).await?,
            };
            if let LoopControl::End(outcome) = flow {
                break outcome;
            }
        };
        self.writer.commit([EventBody::TurnEnded { outcome: outcome.clone() }]).await?;
        self.agent.waiting.watch(&self.session.id, &self.writer.conversation);
        Ok(outcome)
    }

    /// Counts the run, and reports its span.
    fn report(&self, started: Instant, outcome: Option<&TurnOutcome>) {
        if let Some(outcome) = outcome {
            self.agent.metrics.count_turn(outcome);
        }
        if let (Some(observer), Some(span)) = (&self.agent.observer, self.span) {
            observer.turn_finished(&FinishedTurn {
                span,
                session: &self.session.id,
                turn: &self.turn,
                provider: self.agent.model.provider(),
                model: self.agent.model.name(),
                outcome: outcome.map_or("unrecorded", TurnOutcome::as_str),
                usage: self.logged().map(|turn| turn.reply.usage).unwrap_or_default(),
                elapsed: started.elapsed(),
            });
        }
    }

    pub fn logged(&self) -> Option<&LoggedTurn> {
        self.writer.conversation.turn(&self.turn)
    }

    fn next(&self) -> NextAction {
        let Some(turn) = self.logged() else { return NextAction::End(TurnOutcome::Completed) };
        let Some(step) = turn.last_step() else { return NextAction::Model };
        if matches!(step.finish, None | Some(FinishReason::Interrupted)) {
            return NextAction::Repeat;
        }
        let open: Vec<&ToolPart> = step.tools().filter(|tool| tool.result.is_none()).collect();
        let may_run = |tool: &&&ToolPart| tool.approval.is_none() && !tool.call.is_client_tool;
        let runnable: Vec<ToolCallPart> = open.iter().filter(may_run).map(|tool| tool.call.clone()).collect();
        if !runnable.is_empty() {
            return NextAction::Calls(runnable);
        }
        if open.iter().any(|tool| tool.approval.is_some()) {
            return NextAction::End(TurnOutcome::AwaitsApproval);
        }
        if !open.is_empty() {
            return NextAction::End(TurnOutcome::AwaitsClient);
        }
        if step.tools().next().is_none() {
            return NextAction::End(match step.finish {
                Some(FinishReason::Length | FinishReason::ContentFilter) => TurnOutcome::Truncated,
                _ => TurnOutcome::Completed,
            });
        }
        let max_steps = self.options.max_steps;
        if turn.steps_begun >= max_steps {
            NextAction::End(TurnOutcome::StepLimit { max_steps })
        } else {
            NextAction::Model
        }
    }

    /// Sends the request for the next step, in a task of its own.
    pub fn send_request(&self) -> SentRequest {
        let (model, request) = (self.agent.model.clone(), self.request());
        let mut response = JoinSet::new();
        response.spawn(async move { model.send(&request).await });
        SentRequest { at: Instant::now(), response }
    }

    fn request(&self) -> ModelRequest {
        let mut messages = self.messages();
        messages = trim(messages, self.toolbox.bytes, self.options.max_input_tokens);
        let is_first = self.logged().is_none_or(|turn| turn.steps_begun == 0);
        ModelRequest {
            system: Arc::clone(&self.toolbox.system),
            view: Arc::clone(&self.toolbox.view),
            tools: Arc::clone(&self.toolbox.names),
            messages,
            max_output_tokens: self.options.max_output_tokens,
            requires_call: self.options.tool_choice == ToolChoice::Required
                && is_first
                && !self.toolbox.names.is_empty(),
        }
    }

    fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        for turn in &self.writer.conversation.turns {
            // The client has sent the conversation before this turn.
            if let Some(history) = &turn.context.history {
                messages.clone_from(history);
            }
            let mut message = turn.message.clone();
            if let Some(note) = &turn.note {
                message.parts.push(InputPart::Text { text: format!("[Note of the system: {note}]") });
            }
            // Empty when the request's history ends with the assistant.
            if !message.parts.is_empty() {
                messages.push(Message::User(message));
            }
            messages.push(Message::Assistant(turn.reply.clone()));
        }
        messages
    }
}

/// The end of a turn whose model failed.
pub(crate) fn failed(error: &ModelError) -> TurnOutcome {
    let (code, message) = (error.kind.as_str().to_owned(), error.message.clone());
    TurnOutcome::Failed { error: TurnError { code, message } }
}

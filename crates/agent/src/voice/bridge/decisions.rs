//! Decided confirmation requests: their results come from the orchestrator, or from the store if they were missed.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Duration, Instant};
use toolwright_contract::{Envelope, ErrorKind, Failure};
use toolwright_orchestrator::store::{self, Backend, ConfirmationRecord, ConfirmationStatus};
use toolwright_orchestrator::{DeferredResult, Orchestrator, begun_task, confirmation_token};

use super::Bridge;
use super::confirmations::OpenConfirmation;
use crate::event::{EventBody, ToolResultPart, TurnOutcome};
use crate::voice::client::{ClientOutput, DecidedBy, Outcome};

/// How soon a read that failed is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// How a call has ended: with its envelope, or with why it has none.
type CallEnd = Result<Arc<Envelope>, Failure>;

impl Bridge {
    /// A call that waited for confirmation has its result (approved, rejected or expired, here or through another
    /// wire), or a background call has ended.
    pub(super) async fn deferred_result(&mut self, result: Result<DeferredResult, RecvError>) {
        let DeferredResult { execution_id, envelope, .. } = match result {
            Ok(result) => result,
            // Too many results at once: the store has those that were missed.
            Err(RecvError::Lagged(_)) => return self.read_missed_results().await,
            Err(RecvError::Closed) => {
                self.deferred = self.orchestrator.deferred_results_for(&self.session.id);
                return self.read_missed_results().await;
            }
        };
        self.timers.activity();
        if self.confirmations.is_open(&execution_id) {
            return self.question_ended(&execution_id, Ok(envelope)).await;
        }
        self.background_ended(&execution_id, &envelope).await;
    }

    async fn background_ended(&mut self, execution: &str, envelope: &Envelope) {
        let is_own = self.calls.background.remove(execution);
        if !is_own && !matches!(self.orchestrator.task(execution).await, Ok(Some(_))) {
            return;
        }
        let content = self.orchestrator.for_model(&self.session, envelope);
        let tool = &envelope.meta.tool;
        self.notes.push(format!("[The background call of `{tool}` has ended. Its result: {content}]"));
        self.refresh().await;
        self.flush_notes();
    }

    /// Reads the results of open questions and of background calls that were decided without a message to this
    /// session: it was too slow, or another process has decided.
    pub(super) async fn read_missed_results(&mut self) {
        let questions: Vec<(String, String)> =
            self.confirmations.0.iter().map(OpenConfirmation::ids).collect();
        for (execution, id) in questions {
            match missed_result(&self.orchestrator, &self.session.id, &execution, &id).await {
                Ok(Some(end)) => self.question_ended(&execution, end).await,
                Ok(None) => {}
                Err(error) => self.retry_read(&error),
            }
        }
        let background: Vec<String> = self.calls.background.iter().cloned().collect();
        for execution in background {
            let envelope = match self.orchestrator.task(&execution).await {
                Ok(Some(task)) if task.has_ended() => self.orchestrator.task_envelope(&task).await,
                Ok(_) => Ok(None),
                Err(error) => Err(error),
            };
            match envelope {
                Ok(Some(envelope)) => self.background_ended(&execution, &envelope).await,
                Ok(None) => {}
                Err(error) => self.retry_read(&error),
            }
        }
    }

    fn retry_read(&mut self, error: &store::Error) {
        tracing::error!(session = self.session.id, "could not read the result of a call: {error}");
        self.timers.record_at = self.timers.record_at.min(Instant::now() + RETRY);
    }

    /// Closes a request whose call has ended, and tells the client and the model.
    async fn question_ended(&mut self, execution: &str, end: CallEnd) {
        let Some((open, record)) = self.close_question(execution).await else { return };
        if self.delegations.has_asked(execution) {
            if open.decided_by.is_none() {
                self.continue_delegated();
            }
            return;
        }
        self.calls.background.extend(end.as_ref().ok().and_then(|end| begun_task(end)).map(str::to_owned));
        let is_declined = !matches!(record.status, ConfirmationStatus::Approved | ConfirmationStatus::Used);
        let tool = open.question.tool.clone();
        let (content, duration_ms) = match &end {
            Ok(envelope) => (self.orchestrator.for_model(&self.session, envelope), envelope.meta.duration),
            Err(failure) => (self.orchestrator.failure_for_model(&self.session, &tool, failure), 0),
        };
        self.log_decision(&open, &record, is_declined, content.clone(), duration_ms);
        let failure = end.as_ref().map_or_else(Some, |envelope| envelope.outcome.as_ref().err());
        let error = failure.map(|failure| failure.kind.as_str().to_owned());
        let call_id = execution.to_owned();
        self.send_to_client(ClientOutput::ToolStarted { call_id: call_id.clone(), tool: tool.clone() });
        self.send_to_client(ClientOutput::ToolFinished { call_id, tool: tool.clone(), error });
        self.notes.push(match is_declined {
            true => format!("[`{tool}` was not approved and has not run: {content}]"),
            false => format!("[The user has approved `{tool}`. Its result: {content}]"),
        });
        self.refresh().await;
        self.flush_notes();
    }

    /// Closes a request and reports its outcome to the client. If its record cannot be read, it stays open, and the
    /// read is repeated.
    async fn close_question(
        &mut self,
        execution: &str,
    ) -> Option<(OpenConfirmation, Arc<ConfirmationRecord>)> {
        let position = self.confirmations.0.iter().position(|open| open.execution == execution)?;
        let id = self.confirmations.0.get(position)?.question.id.clone();
        let record = self.orchestrator.store().confirmation(confirmation_token::request_id(&id)).await;
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                self.retry_read(&error);
                return None;
            }
        };
        let open = self.confirmations.0.remove(position);
        let status = record.as_ref().map_or(ConfirmationStatus::Expired, |record| record.status);
        let outcome = match status {
            ConfirmationStatus::Approved | ConfirmationStatus::Used => Outcome::Approved,
            ConfirmationStatus::Rejected => Outcome::Rejected,
            ConfirmationStatus::Expired | ConfirmationStatus::Pending => Outcome::Expired,
        };
        let by = match outcome {
            Outcome::Expired => DecidedBy::Expiry,
            _ => open.decided_by.unwrap_or(DecidedBy::Elsewhere),
        };
        self.send_to_client(ClientOutput::ConfirmationDecided { id, outcome, by });
        Some((open, record?))
    }

    fn log_decision(
        &mut self,
        open: &OpenConfirmation,
        record: &ConfirmationRecord,
        is_declined: bool,
        content: Value,
        duration_ms: u64,
    ) {
        let turn = open.turn.as_ref();
        let is_written = turn.is_some();
        if is_written {
            self.log.event(turn, EventBody::TurnResumed);
        }
        if let Some(by) = &record.decided_by {
            self.log.event(
                turn,
                EventBody::ApprovalDecided {
                    approval_id: open.question.id.clone(),
                    call_id: open.execution.clone(),
                    approved: !is_declined,
                    by: by.clone(),
                    reason: record.reason.clone(),
                },
            );
        }
        let is_error = content.get("ok") != Some(&Value::Bool(true));
        let result = ToolResultPart {
            call_id: open.execution.clone(),
            tool: open.question.tool.clone(),
            content: Arc::new(content),
            is_error,
            is_declined,
            duration_ms,
            task: None,
        };
        self.log.event(turn, EventBody::ToolFinished { result });
        if is_written {
            self.log.event(turn, EventBody::TurnEnded { outcome: TurnOutcome::Completed });
        }
    }
}

/// The end of a call whose request is closed. `None` while it is open, or the call runs.
async fn missed_result(
    orchestrator: &Orchestrator,
    session: &str,
    execution: &str,
    id: &str,
) -> store::Result<Option<CallEnd>> {
    let now = orchestrator.now();
    let request = orchestrator.store().confirmation(confirmation_token::request_id(id)).await?;
    let status = request.map_or(ConfirmationStatus::Expired, |request| request.status_at(now));
    if status == ConfirmationStatus::Pending {
        return Ok(None);
    }
    if let Some(envelope) = orchestrator.recorded_envelope(session, execution).await? {
        return Ok(Some(Ok(envelope)));
    }
    if status == ConfirmationStatus::Expired {
        let failure = Failure::new(ErrorKind::Permanent, "The call was not approved in time.")
            .suggest("Ask the user whether they still want it.");
        return Ok(Some(Err(failure)));
    }
    Ok(orchestrator.interruption_failure(session, execution).await?.map(Err))
}

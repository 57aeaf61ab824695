//! The calls of a step: they run through the orchestrator, and their results are written in the order in which they
//! end.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolwright_contract::{Envelope, ErrorKind, Failure, SideEffects};
use toolwright_orchestrator::store::{Backend, ExecutionStatus, SessionRecord};
use toolwright_orchestrator::{
    CallRequest, Orchestrator, SessionRef, ToolCall, begun_task, confirmation_token,
};

use crate::event::{ConfirmationPart, EventBody, ToolCallPart, ToolResultPart, TurnOutcome};
use crate::log_writer::WriteError;
use crate::turn::{LoopControl, TurnRun};

impl TurnRun {
    /// Runs calls: reads concurrently, writes in order.
    pub(crate) async fn run_calls(&mut self, calls: Vec<ToolCallPart>) -> Result<LoopControl, WriteError> {
        let (lost, calls): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| call.is_redacted && !self.secret_args.contains_key(&call.id));
        for call in &lost {
            // The secret arguments were only in the memory of a process that has died.
            let event = self.outcome_of_lost(call).await;
            self.writer.push(event).await?;
        }
        let (orchestrator, session) = (self.orchestrator.clone(), Arc::clone(&self.session));
        let requests = calls.iter().map(|call| self.call_request(call)).collect();
        let (sender, mut results) = mpsc::unbounded_channel();
        let report = move |position: usize, envelope: &Arc<Envelope>| {
            // The receiver is dropped only when the turn is stopped.
            let _ = sender.send((position, Arc::clone(envelope)));
        };
        let work = orchestrator.calls(&session, requests, report);
        let cancelled = self.cancelled.clone();
        tokio::pin!(work, cancelled);
        let mut is_running = true;
        loop {
            tokio::select! {
                biased;
                Some((position, envelope)) = results.recv() => {
                    if let Some(call) = calls.get(position) {
                        let event = self.finished(call, &envelope);
                        self.writer.push(event).await?;
                    }
                }
                _ = &mut work, if is_running => is_running = false,
                () = &mut cancelled => break,
                else => break,
            }
            if !is_running && results.is_empty() {
                self.writer.commit([]).await?;
                return Ok(LoopControl::Continue);
            }
        }
        self.settle_stopped(&calls).await?;
        Ok(LoopControl::End(TurnOutcome::Stopped))
    }

    fn call_request(&self, call: &ToolCallPart) -> CallRequest {
        let args = self.secret_args.get(&call.id).unwrap_or(&call.args).clone();
        let tool_call = ToolCall { id: Some(call.id.clone()), tool: call.tool.clone(), args };
        CallRequest::new(SessionRef::Id(self.session.id.clone()), tool_call).principal(&self.principal)
    }

    /// Ends a call that does not run.
    pub(crate) async fn refuse_call(&self, call: &ToolCallPart, failure: Failure) -> EventBody {
        let envelope = self.orchestrator.call(self.call_request(call).refused(failure)).await;
        self.finished(call, &envelope)
    }

    /// The event of a call that has ended.
    fn finished(&self, call: &ToolCallPart, envelope: &Envelope) -> EventBody {
        let result = result_part(&self.orchestrator, &self.session, (&call.id, &call.tool), Ok(envelope));
        let confirmation =
            envelope.outcome.as_ref().err().and_then(|failure| failure.confirmation.as_deref());
        match confirmation {
            Some(request) => EventBody::ApprovalRequested {
                approval: ConfirmationPart {
                    id: confirmation_token::new_answer_id(request, &self.session.id, &self.principal),
                    call_id: result.call_id,
                    tool: result.tool,
                    args: request.args.clone(),
                    preview: request.preview.clone(),
                    expires_at: request.expires_at,
                    content: result.content,
                },
            },
            None => EventBody::ToolFinished { result },
        }
    }

    /// Records the outcome of the calls of a stopped turn. Reads were cancelled; running writes are awaited.
    async fn settle_stopped(&mut self, calls: &[ToolCallPart]) -> Result<(), WriteError> {
        for call in calls {
            let known =
                self.logged().and_then(|turn| turn.reply.tools().find(|tool| tool.call.id == call.id));
            if known.is_none_or(|tool| tool.result.is_some() || tool.approval.is_some()) {
                continue;
            }
            let execution = self.orchestrator.store().execution(&self.session.id, &call.id).await?;
            let continues = self.continues(call).await;
            let event = match execution.map(|execution| execution.status) {
                Some(ExecutionStatus::Finished(envelope)) => self.finished(call, &envelope),
                Some(ExecutionStatus::Running | ExecutionStatus::InDoubt) if continues => {
                    // Sending the same call again waits for the running one and starts nothing.
                    let envelope = self.orchestrator.call(self.call_request(call)).await;
                    self.finished(call, &envelope)
                }
                _ => {
                    let failure = Failure::new(
                        ErrorKind::Permanent,
                        "The user stopped the turn; the call did not run.",
                    )
                    .suggest("Call it again only if the user asks for it.");
                    self.refuse_call(call, failure).await
                }
            };
            self.writer.push(event).await?;
        }
        self.writer.commit([]).await
    }

    /// Whether a call of this tool continues when its caller disconnects.
    async fn continues(&self, call: &ToolCallPart) -> bool {
        let runtime = self.orchestrator.runtime_for(&self.session).await.ok().flatten();
        let spec = runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(&call.tool));
        spec.is_none_or(|spec| spec.side_effects == SideEffects::Writes || !spec.idempotent)
    }

    /// The result of a call whose secret arguments are lost.
    async fn outcome_of_lost(&self, call: &ToolCallPart) -> EventBody {
        if let Ok(Some(envelope)) = self.orchestrator.recorded_envelope(&self.session.id, &call.id).await {
            return self.finished(call, &envelope);
        }
        let failure =
            Failure::new(ErrorKind::Permanent, "The server was restarted before the call had a result.")
                .suggest("Check whether it took effect, and call it again if it did not.");
        let ids = (call.id.as_str(), call.tool.as_str());
        EventBody::ToolFinished { result: result_part(&self.orchestrator, &self.session, ids, Err(&failure)) }
    }
}

/// The result of a call, with its id and tool: from its envelope, or from why it has none.
pub(crate) fn result_part(
    orchestrator: &Orchestrator,
    session: &SessionRecord,
    (call_id, tool): (&str, &str),
    end: Result<&Envelope, &Failure>,
) -> ToolResultPart {
    let content = match end {
        Ok(envelope) => orchestrator.for_model(session, envelope),
        Err(failure) => orchestrator.failure_for_model(session, tool, failure),
    };
    let envelope = end.ok();
    ToolResultPart {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        content: content.into(),
        is_error: !envelope.is_some_and(Envelope::is_ok),
        is_declined: false,
        duration_ms: envelope.map_or(0, |envelope| envelope.meta.duration),
        task: envelope.and_then(begun_task).map(str::to_owned),
    }
}

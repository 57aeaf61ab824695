//! Records results that the log lacks: after a crash, or when an answer came through another wire.

use std::sync::Arc;

use toolwright_contract::{Envelope, ErrorKind, Failure};
use toolwright_orchestrator::confirmation_token;
use toolwright_orchestrator::store::{
    self, Backend, ConfirmationRecord, ConfirmationStatus, ConversationLog, SessionRecord,
};

use crate::agent::{Agent, commit_events};
use crate::calls::result_part;
use crate::conversation::Conversation;
use crate::error::Error;
use crate::event::{ConfirmationPart, EventBody, FinishReason, ToolCallPart, ToolResultPart, TurnOutcome};
use crate::log_writer::{LogWriter, OpenOutcome, RECORDING, turn_of_writer};
use crate::message::ToolPart;

impl Agent {
    /// The conversation, after the results that only the store has were written to the log. While a turn runs,
    /// unchanged.
    pub(crate) async fn load_recovered(&self, session: &Arc<SessionRecord>) -> Result<Conversation, Error> {
        let orchestrator = &self.0.orchestrator;
        let conversation = Conversation::load(orchestrator, &session.id).await?;
        match self.with_missing_events(session, conversation).await? {
            Some(conversation) => Ok(conversation),
            None => Ok(Conversation::load(orchestrator, &session.id).await?),
        }
    }

    /// As [`Self::load_recovered`]; `None` if a turn runs. The writer is named [`RECORDING`] and runs no turn: a
    /// client that sends its message again waits for it instead of taking it for the running turn.
    pub(crate) async fn with_missing_events(
        &self,
        session: &Arc<SessionRecord>,
        conversation: Conversation,
    ) -> Result<Option<Conversation>, Error> {
        if self.missing_events(session, &conversation, None).await?.is_empty() {
            return Ok(Some(conversation));
        }
        let opening = self.open_log(&session.id, RECORDING, conversation).await?;
        let OpenOutcome::Opened(mut writer) = opening else { return Ok(None) };
        let recorded = self.reconcile(session, &mut writer, None).await;
        let conversation = writer.conversation.clone();
        writer.close().await;
        recorded.map(|()| Some(conversation))
    }

    /// Writes the confirmation requests, decisions and results that only the store has. `running` is the turn of the
    /// writer, which writes its own pause.
    pub(crate) async fn reconcile(
        &self,
        session: &SessionRecord,
        writer: &mut LogWriter,
        running: Option<&str>,
    ) -> Result<(), Error> {
        for (turn, event) in self.missing_events(session, &writer.conversation, running).await? {
            writer.push_to(&turn, event);
        }
        commit_events(writer, Vec::new()).await
    }

    /// The events that the log lacks, with their turns.
    pub(crate) async fn missing_events(
        &self,
        session: &SessionRecord,
        conversation: &Conversation,
        running: Option<&str>,
    ) -> Result<Vec<(Arc<str>, EventBody)>, Error> {
        let mut events = self.task_results(session, conversation).await?;
        let is_open = |tool: &&ToolPart| tool.result.is_none() && !tool.call.is_client_tool;
        if !conversation.turns.iter().any(|turn| turn.reply.tools().any(|tool| is_open(&tool))) {
            return Ok(events);
        }
        let pending = self.0.orchestrator.pending_confirmations(Some(&session.id)).await?;
        for turn in &conversation.turns {
            for tool in turn.reply.tools().filter(is_open) {
                let request = pending.iter().find(|request| request.execution == tool.call.id);
                let missing = self.missing_of_call(session, tool, request.map(|request| &**request)).await?;
                events.extend(missing.into_iter().map(|event| (Arc::clone(&turn.id), event)));
            }
            // A turn whose process died while it asked for confirmation pauses.
            let is_unfinished = turn.reply.outcome.is_none() && running != Some(&*turn.id);
            let asks = |tool: &ToolPart| pending.iter().any(|request| request.execution == tool.call.id);
            if is_unfinished && turn.reply.tools().any(asks) {
                let outcome = TurnOutcome::AwaitsApproval;
                events.push((Arc::clone(&turn.id), EventBody::TurnEnded { outcome }));
            }
        }
        Ok(events)
    }

    /// The results of tasks that have ended, for calls that run in the background.
    async fn task_results(
        &self,
        session: &SessionRecord,
        conversation: &Conversation,
    ) -> store::Result<Vec<(Arc<str>, EventBody)>> {
        let mut events = Vec::new();
        for turn in &conversation.turns {
            for tool in turn.reply.tools() {
                let Some(id) = tool.result.as_ref().and_then(|result| result.task.as_deref()) else {
                    continue;
                };
                let task = self.0.orchestrator.task(id).await?.filter(|task| task.has_ended());
                let Some(task) = task else { continue };
                if let Some(envelope) = self.0.orchestrator.task_envelope(&task).await? {
                    let result = self.result_event(session, &tool.call, Ok(&envelope), false);
                    events.push((Arc::clone(&turn.id), result));
                }
            }
        }
        Ok(events)
    }

    /// The missing events of a call without a result. `request` is its pending confirmation request.
    async fn missing_of_call(
        &self,
        session: &SessionRecord,
        tool: &ToolPart,
        request: Option<&ConfirmationRecord>,
    ) -> store::Result<Vec<EventBody>> {
        let recorded = self.0.orchestrator.recorded_envelope(&session.id, &tool.call.id).await?;
        match (recorded, &tool.approval, request) {
            (Some(envelope), _, _) => self.with_decision(session, tool, Ok(&envelope)).await,
            (None, Some(approval), None) => self.interrupted_result(session, tool, approval).await,
            // The request has a new token or preview since the user saw it, so the user has to be asked again.
            (None, Some(approval), Some(request))
                if approval.id == confirmation_token::answer_id(request, &session.principal) =>
            {
                Ok(Vec::new())
            }
            (None, _, Some(request)) => Ok(vec![self.approval_event(session, &tool.call, request).await?]),
            (None, None, None) => Ok(Vec::new()),
        }
    }

    /// The result of a call, preceded by the decision if the log lacks it.
    pub(crate) async fn with_decision(
        &self,
        session: &SessionRecord,
        tool: &ToolPart,
        end: Result<&Envelope, &Failure>,
    ) -> store::Result<Vec<EventBody>> {
        let mut events = Vec::new();
        let mut is_declined = tool.decision.as_ref().is_some_and(|decision| !decision.approved);
        if let (Some(approval), None) = (&tool.approval, &tool.decision)
            && let Some(request) =
                self.0.orchestrator.store().confirmation(approval.confirmation_id()).await?
            && let Some(by) = request.decided_by.clone()
        {
            is_declined = request.status == ConfirmationStatus::Rejected;
            events.push(EventBody::ApprovalDecided {
                approval_id: approval.id.clone(),
                call_id: tool.call.id.clone(),
                approved: !is_declined,
                by,
                reason: request.reason.clone(),
            });
        }
        events.push(self.result_event(session, &tool.call, end, is_declined));
        Ok(events)
    }

    pub(crate) fn result_event(
        &self,
        session: &SessionRecord,
        call: &ToolCallPart,
        end: Result<&Envelope, &Failure>,
        is_declined: bool,
    ) -> EventBody {
        let result = result_part(&self.0.orchestrator, session, (&call.id, &call.tool), end);
        EventBody::ToolFinished { result: ToolResultPart { is_declined, ..result } }
    }

    /// The result of a call whose confirmation request is closed and that has none in the store: it was interrupted
    /// while it ran, or not approved in time. Empty while the call may still run.
    async fn interrupted_result(
        &self,
        session: &SessionRecord,
        tool: &ToolPart,
        approval: &ConfirmationPart,
    ) -> store::Result<Vec<EventBody>> {
        match self.0.orchestrator.interruption_failure(&session.id, &tool.call.id).await? {
            Some(failure) => self.with_decision(session, tool, Err(&failure)).await,
            None => Ok(self.expired(session, tool, approval).await?.into_iter().collect()),
        }
    }

    /// The result of a call whose confirmation request has expired. `None` while the call may still run.
    async fn expired(
        &self,
        session: &SessionRecord,
        tool: &ToolPart,
        approval: &ConfirmationPart,
    ) -> store::Result<Option<EventBody>> {
        let stored = self.0.orchestrator.store().confirmation(approval.confirmation_id()).await?;
        let is_over = match stored.map(|request| request.status) {
            None | Some(ConfirmationStatus::Expired) => true,
            Some(ConfirmationStatus::Pending) => self.0.orchestrator.now() >= approval.expires_at,
            Some(ConfirmationStatus::Approved | ConfirmationStatus::Rejected | ConfirmationStatus::Used) => {
                false
            }
        };
        let failure = || {
            Failure::new(ErrorKind::Permanent, "The call was not approved in time.")
                .suggest("Ask the user whether they still want it.")
        };
        Ok(is_over.then(|| self.result_event(session, &tool.call, Err(&failure()), true)))
    }

    async fn approval_event(
        &self,
        session: &SessionRecord,
        call: &ToolCallPart,
        request: &ConfirmationRecord,
    ) -> store::Result<EventBody> {
        let message = format!("`{}` needs the user's approval first.", call.tool);
        let failure = Failure::new(ErrorKind::ConfirmationRequired, message).suggest(
            "Tell the user what the call would do and wait. It runs once they approve: do not call it again.",
        );
        let content = self.0.orchestrator.failure_for_model(session, &call.tool, &failure).into();
        let approval = ConfirmationPart {
            id: confirmation_token::answer_id(request, &session.principal),
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            args: self.0.orchestrator.redacted_args(request).await?,
            preview: request.preview.clone(),
            expires_at: request.expires_at,
            content,
        };
        Ok(EventBody::ApprovalRequested { approval })
    }

    /// Stops a turn that runs in another process by taking over its log: it ends with its next event.
    pub(crate) async fn stop_elsewhere(&self, session: &SessionRecord) -> Result<bool, Error> {
        let orchestrator = &self.0.orchestrator;
        let Some(writer) = orchestrator.store().log_writer(&session.id).await? else { return Ok(false) };
        let turn = turn_of_writer(&writer);
        if turn == RECORDING {
            return Ok(false);
        }
        let mut writer = LogWriter::take(orchestrator, &session.id, turn).await?;
        self.reconcile(session, &mut writer, Some(turn)).await?;
        let logged = writer.conversation.turn(turn);
        let mut events = Vec::new();
        if let Some(logged) = logged.filter(|logged| logged.reply.outcome.is_none()) {
            events.extend(logged.open_part().map(|part| EventBody::PartEnded { part, provider_data: None }));
            if logged.last_step().is_some_and(|step| step.finish.is_none()) {
                let (step, finish) = (logged.steps_begun, FinishReason::Interrupted);
                events.push(EventBody::StepFinished { step, finish, usage: None });
            }
            events.push(EventBody::TurnEnded { outcome: TurnOutcome::Stopped });
        }
        commit_events(&mut writer, events).await?;
        writer.close().await;
        Ok(true)
    }

    /// Before a new turn: gives a result to calls of earlier turns that have none and do not wait for an answer.
    pub(crate) async fn settle_earlier_turns(
        &self,
        session: &Arc<SessionRecord>,
        writer: &mut LogWriter,
        current: &str,
    ) -> Result<(), Error> {
        self.reconcile(session, writer, None).await?;
        let mut events = Vec::new();
        for turn in writer.conversation.turns.iter().filter(|turn| *turn.id != *current) {
            let is_lost = |tool: &&ToolPart| tool.result.is_none() && tool.approval.is_none();
            for tool in turn.reply.tools().filter(is_lost) {
                let message = match tool.call.is_client_tool {
                    true => "The client sent no result.",
                    false => "The call has no result: the server was stopped before it ended.",
                };
                let failure = Failure::new(ErrorKind::Permanent, message)
                    .suggest("Check whether it took effect, and call it again if it is still wanted.");
                let event = self.result_event(session, &tool.call, Err(&failure), false);
                events.push((Arc::clone(&turn.id), event));
            }
        }
        for (turn, event) in events {
            writer.push_to(&turn, event);
        }
        Ok(())
    }
}

//! A person's answer to a confirmation request, which continues the turn.

use std::sync::Arc;

use toolwright_orchestrator::confirmation_token::{self, AnswerProof, Approver};
use toolwright_orchestrator::store::{Backend, ConfirmationStatus, SessionRecord};

use crate::agent::{Agent, RunContext, RunOptions, Turn, commit_events, existing_turn};
use crate::conversation::Conversation;
use crate::error::Error;
use crate::event::EventBody;
use crate::log_writer::{LogWriter, OpenOutcome};
use crate::message::ToolPart;
use crate::request::ApprovalAnswer;

impl Agent {
    /// Approves or rejects a call, for the principal of the session. The store decides whether the answer counts: see
    /// [`confirmation_token::answer_id`]. The turn continues once all of its calls are answered.
    ///
    /// The same answer sent again returns the turn unchanged; a different answer is refused. Answers to several calls
    /// of a turn may arrive at once: each waits for the one before.
    pub async fn answer(&self, answer: ApprovalAnswer) -> Result<Turn, Error> {
        loop {
            if let Some(turn) = self.try_answer(&answer).await? {
                return Ok(turn);
            }
            self.wait_for_running(&answer.session).await;
        }
    }

    /// As [`Self::answer`]; `None` while another answer is continuing the turn.
    async fn try_answer(&self, answer: &ApprovalAnswer) -> Result<Option<Turn>, Error> {
        let session = self.active_session(&answer.session).await?;
        if !session.principal.is_same_as(&answer.principal) {
            return Err(confirmation_token::Error::Refused.into());
        }
        let conversation = self.load_recovered(&session).await?;
        let known =
            conversation.approval(&answer.approval_id).map(|(turn, tool)| (turn.clone(), tool.clone()));
        let (turn, tool) = known.ok_or(confirmation_token::Error::Refused)?;
        if let Some(decision) = &tool.decision {
            let is_same = decision.approved == answer.approved;
            let found = is_same.then(|| existing_turn(&session.id, &turn, conversation.end));
            return found.map(Some).ok_or_else(|| confirmation_token::Error::Refused.into());
        }
        let (principal, context) = (Some(Arc::clone(&answer.principal)), Arc::clone(&turn.context));
        let run = RunOptions { principal, context, replaces: None };
        let context = self.run_context(&session, &run, &turn.id).await?;
        let mut writer = match self.open_log(&session.id, &turn.id, conversation).await? {
            OpenOutcome::Opened(writer) => *writer,
            OpenOutcome::Busy(busy) if *busy == *turn.id => return Ok(None),
            OpenOutcome::Busy(turn) => return Err(Error::Busy { turn }),
        };
        let resumed_at = writer.conversation.end;
        // Edited arguments are validated first: an error belongs to this request, not to the turn.
        let settled = match (self.is_pending(answer, &session).await?, answer.args.is_some()) {
            (false, _) => Err(confirmation_token::Error::Refused),
            (true, true) => self.decide(&session, answer).await,
            (true, false) => Ok(()),
        };
        if let Err(error) = settled {
            writer.close().await;
            return Err(error.into());
        }
        // The decision is logged together with the result, from the store: a decision that the store has not recorded
        // did not happen.
        commit_events(&mut writer, vec![EventBody::TurnResumed]).await?;
        let turn = Turn { is_new: true, ..existing_turn(&session.id, &turn, resumed_at) };
        self.spawn_decided(writer, context, session, answer.clone(), tool);
        Ok(Some(turn))
    }

    /// Whether the request still waits for an answer.
    async fn is_pending(&self, answer: &ApprovalAnswer, session: &SessionRecord) -> Result<bool, Error> {
        let id = confirmation_token::request_id(&answer.approval_id);
        let request = self.0.orchestrator.store().confirmation(id).await?;
        let now = self.0.orchestrator.now();
        Ok(request.is_some_and(|request| {
            request.session == session.id && request.status_at(now) == ConfirmationStatus::Pending
        }))
    }

    /// Rejects the pending calls of the turns that a message replaces: their requests are no longer visible.
    pub(crate) async fn decline_replaced(
        &self,
        run: &RunContext,
        conversation: &Conversation,
        replaced: &str,
    ) -> Result<(), Error> {
        let first = conversation.turns.iter().position(|turn| *turn.id == *replaced);
        let turns = first.map(|first| &conversation.turns[first..]).unwrap_or_default();
        let tools = turns.iter().flat_map(|turn| turn.reply.tools()).filter(|tool| tool.awaits_approval());
        for approval in tools.filter_map(|tool| tool.approval.as_ref()) {
            let approver = Approver {
                token: approval.confirmation_id(),
                proof: AnswerProof::Transport,
                session: &run.session.id,
                client_id: &run.session.client_id,
                by: &run.principal.id,
                principal: Some(&run.principal),
            };
            let reason = Some("the message was replaced".to_owned());
            // Any other error: the request was answered or has expired.
            if let Err(confirmation_token::Error::Store(error)) =
                self.0.orchestrator.reject(&approver, reason).await
            {
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Records the decision in the store; an approved call runs.
    async fn decide(
        &self,
        session: &SessionRecord,
        answer: &ApprovalAnswer,
    ) -> Result<(), confirmation_token::Error> {
        let approver = Approver {
            token: &answer.approval_id,
            proof: AnswerProof::Conversation,
            session: &session.id,
            client_id: &session.client_id,
            by: &answer.principal.id,
            principal: Some(&answer.principal),
        };
        let orchestrator = &self.0.orchestrator;
        let decided = match answer.approved {
            true => orchestrator.approve(&approver, answer.args.clone()).await,
            false => orchestrator.reject(&approver, answer.reason.clone()).await,
        };
        decided.map(drop)
    }

    /// Decides, records the result and continues the turn in a task of its own.
    fn spawn_decided(
        &self,
        mut writer: LogWriter,
        context: RunContext,
        session: Arc<SessionRecord>,
        answer: ApprovalAnswer,
        tool: ToolPart,
    ) {
        let live = Arc::clone(&writer.live);
        self.running().insert(session.id.clone(), Arc::clone(&live));
        let agent = self.clone();
        tokio::spawn(async move {
            if answer.args.is_none()
                && let Err(error) = agent.decide(&session, &answer).await
            {
                tracing::warn!(
                    session = session.id,
                    call = tool.call.id,
                    "an approval does not count: {error}"
                );
            }
            let id = session.id.clone();
            match agent.reconcile(&session, &mut writer, Some(&context.turn)).await {
                Ok(()) => agent.finish_answer(writer, context).await,
                Err(error) => {
                    tracing::error!(session = id, "could not record the result of an approved call: {error}");
                    writer.close().await;
                }
            }
            agent.remove_running(&id, &live);
        });
    }

    /// Continues the turn, unless a later one has begun.
    async fn finish_answer(&self, mut writer: LogWriter, context: RunContext) {
        let turns = &writer.conversation.turns;
        if turns.last().is_some_and(|last| last.id == context.turn) {
            return self.run(writer, context).run().await;
        }
        let outcome = crate::event::TurnOutcome::Completed;
        if let Err(error) = writer.commit([EventBody::TurnEnded { outcome }]).await {
            tracing::error!("could not record the end of a turn: {error}");
        }
        writer.close().await;
    }
}

//! A person's answer to an approval request, which continues its turn.

use std::sync::Arc;

use toolwright_orchestrator::confirm::{self, Approver, Proof};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, ConfirmationStatus, SessionRecord};

use crate::agent::{Agent, RunContext, RunOptions, Turn, committed, found};
use crate::conversation::Conversation;
use crate::error::Error;
use crate::event::EventBody;
use crate::log_writer::{LogWriter, Opening};
use crate::message::ToolPart;
use crate::request::ApprovalAnswer;

impl Agent {
    /// Approves or declines a call, for the session's authenticated user. The store decides whether the answer counts. The
    /// turn continues once none of its calls waits any more.
    ///
    /// The same answer again finds the turn as it is; another answer is refused.
    pub async fn answer(&self, answer: ApprovalAnswer) -> Result<Turn, Error> {
        let session = self.active_session(&answer.session).await?;
        if !session.principal.is_same_as(&answer.principal) {
            return Err(confirm::Error::Refused.into());
        }
        let conversation = self.recovered(&session).await?;
        let known =
            conversation.approval(&answer.approval_id).map(|(turn, tool)| (turn.clone(), tool.clone()));
        let (turn, tool) = known.ok_or(confirm::Error::Refused)?;
        if let Some(decision) = &tool.decision {
            let is_same = decision.approved == answer.approved;
            let found = is_same.then(|| found(&session.id, &turn, conversation.end));
            return found.ok_or_else(|| confirm::Error::Refused.into());
        }
        let request = self.0.orchestrator.store().confirmation(&answer.approval_id).await?;
        if !request.is_some_and(|request| self.is_pending(&request, &session)) {
            return Err(confirm::Error::Refused.into());
        }
        let run = RunOptions { principal: Some(Arc::clone(&answer.principal)), ..RunOptions::default() };
        let context = self.run_context(&session, &run, &turn.id).await?;
        let mut writer = self.open_for_answer(&session, &turn.id, conversation).await?;
        let resumed_at = writer.conversation.end;
        // Edited arguments are validated first: an error belongs to this request, not to the turn.
        let settled = match answer.args.is_some() {
            true => Some(self.decide(&session, &answer).await),
            false => None,
        };
        if let Some(Err(error)) = settled {
            writer.close().await;
            return Err(error.into());
        }
        // The decision is logged with the result, from the store: what the store has not recorded was not decided.
        committed(&mut writer, vec![EventBody::TurnResumed]).await?;
        let turn = Turn { is_new: true, ..found(&session.id, &turn, resumed_at) };
        self.spawn_decided(writer, context, session, answer, tool);
        Ok(turn)
    }

    fn is_pending(&self, request: &ConfirmationRecord, session: &SessionRecord) -> bool {
        request.status == ConfirmationStatus::Pending
            && request.session == session.id
            && self.0.orchestrator.now() < request.expires_at
    }

    async fn open_for_answer(
        &self,
        session: &SessionRecord,
        turn: &str,
        conversation: Conversation,
    ) -> Result<LogWriter, Error> {
        match LogWriter::open(&self.0.orchestrator, &session.id, turn, conversation).await? {
            Opening::Opened(writer) => Ok(*writer),
            Opening::Busy(turn) => Err(Error::Busy { turn }),
        }
    }

    /// Decides in the store; an approved call runs.
    async fn decide(&self, session: &SessionRecord, answer: &ApprovalAnswer) -> Result<(), confirm::Error> {
        let approver = Approver {
            token: &answer.approval_id,
            proof: Proof::Transport,
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

    /// Decides, records the result and continues the turn, in a task of its own.
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
            match agent.reconcile(&session, &mut writer).await {
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

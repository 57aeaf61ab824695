//! Turns that wait for a confirmation, or were interrupted. Answers given in this process arrive directly; answers
//! given in other processes are polled from the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::store::{self, Backend, ConversationLog, SessionRecord};

use crate::agent::{Agent, RunOptions, Turn, commit_events, existing_turn};
use crate::conversation::{Conversation, LoggedTurn, from_entry};
use crate::error::Error;
use crate::event::EventBody;
use crate::log_writer::{LogWriter, OpenOutcome, RECORDING};

/// How often the store is polled for answers that were given in other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay before a log is tried again that another writer has open.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
const OTHER_PROCESS_INTERVAL: Duration = Duration::from_millis(200);
/// How many logs are read in parallel after a start.
const PAGE: usize = 256;

/// The confirmation requests of waiting turns of this process, by session.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<String, Vec<String>>>);

impl Waiting {
    /// Replaces the known requests of a session.
    pub fn watch(&self, session: &str, conversation: &Conversation) {
        let tools = conversation.turns.iter().flat_map(|turn| turn.reply.tools());
        let waiting = tools.filter(|tool| tool.result.is_none()).filter_map(|tool| tool.approval.as_ref());
        let ids: Vec<String> = waiting.map(|approval| approval.confirmation_id().to_owned()).collect();
        if ids.is_empty() {
            self.lock().remove(session);
        } else {
            self.lock().insert(session.to_owned(), ids);
        }
    }

    fn forget(&self, session: &str) {
        self.lock().remove(session);
    }

    fn requests(&self) -> HashMap<String, String> {
        let waiting = self.lock();
        let ids = waiting.iter().flat_map(|(session, ids)| ids.iter().map(move |id| (id, session)));
        ids.map(|(id, session)| (id.clone(), session.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Selects the turns to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContinueScope {
    /// Paused turns whose calls are all answered.
    Answered,
    /// Also turns whose process has died while calls ran or were to be answered. A turn interrupted during the
    /// model's answer is repeated only when its client returns: a response has a cost, and may no longer be wanted. A
    /// turn that made no progress since its last resumption is not resumed again: it may have crashed the process.
    BetweenSteps { was_resumed: bool },
    /// All turns that have not ended.
    Interrupted,
    /// As `Answered`, for a delegation of a voice model.
    Delegated,
}

impl ContinueScope {
    fn includes(self, turn: &LoggedTurn) -> bool {
        let has_calls = || turn.last_step().is_some_and(|step| step.tools().next().is_some());
        let is_interrupted = turn.reply.outcome.is_none();
        match self {
            Self::Answered | Self::Delegated => turn.is_answered(),
            Self::BetweenSteps { .. } => turn.is_answered() || (is_interrupted && has_calls()),
            Self::Interrupted => turn.is_answered() || is_interrupted,
        }
    }
}

impl Agent {
    /// The running turn, here or in another process. An interrupted or answered turn is continued first. `None` when
    /// the last turn has ended, or waits.
    pub async fn resume(&self, session: &str, principal: &Arc<Principal>) -> Result<Option<Turn>, Error> {
        loop {
            if let Some(turn) = self.running_turn(session).await? {
                return Ok(Some(turn));
            }
            let principal = Some(Arc::clone(principal));
            match self.continue_session(session, ContinueScope::Interrupted, principal).await? {
                // The first event of the turn may not be written yet.
                ContinueOutcome::Running => tokio::time::sleep(RETRY_INTERVAL).await,
                ContinueOutcome::Turn(turn) => return Ok(Some(turn)),
                ContinueOutcome::Nothing => return Ok(None),
            }
        }
    }

    /// The last turn, if it has events after this position.
    pub async fn last_turn_after(&self, session: &str, position: u64) -> Result<Option<Turn>, Error> {
        let record = self.session(session).await?;
        let conversation = self.load_recovered(&record).await?;
        let last = conversation.turns.last().filter(|last| last.end > position);
        Ok(last.map(|last| existing_turn(session, last, conversation.end)))
    }

    /// After a start: continues turns whose answers have arrived, and those that were interrupted while calls ran.
    /// Other interrupted turns continue when their clients return; the log has their number.
    pub async fn recover(&self) -> store::Result<()> {
        let (mut after, mut interrupted) = (String::new(), 0_usize);
        loop {
            let entries = self.0.orchestrator.store().last_log_entries(&after, PAGE).await?;
            let Some((last, _)) = entries.last() else { break };
            after.clone_from(last);
            for (session, entry) in &entries {
                let event = from_entry(entry)?;
                let is_over = matches!(&event.body, EventBody::TurnEnded { outcome } if !outcome.is_pause());
                if is_over {
                    continue;
                }
                let was_resumed = matches!(event.body, EventBody::TurnResumed);
                let wanted = ContinueScope::BetweenSteps { was_resumed };
                match self.continue_session(session, wanted, None).await {
                    Ok(ContinueOutcome::Nothing) => {
                        interrupted += usize::from(self.is_interrupted(session).await?)
                    }
                    Ok(ContinueOutcome::Running | ContinueOutcome::Turn(_)) => {}
                    Err(error) => {
                        tracing::warn!(session, "could not continue a turn after the start: {error}");
                    }
                }
            }
        }
        if interrupted > 0 {
            tracing::warn!(
                "{interrupted} turns were interrupted while the model answered; they continue when their clients return"
            );
        }
        Ok(())
    }

    async fn is_interrupted(&self, session: &str) -> store::Result<bool> {
        let conversation = Conversation::load(&self.0.orchestrator, session).await?;
        Ok(conversation.turns.last().is_some_and(|turn| turn.reply.outcome.is_none()))
    }

    /// Continues turns whose calls were approved, rejected or not answered in time, on any wire of this process.
    pub(crate) fn receive_deferred_results(&self) {
        let mut results = self.0.orchestrator.deferred_results();
        let agent = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                let session = match results.recv().await {
                    Ok(result) => result.session,
                    // Missed answers are read from the store.
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return,
                };
                let Some(agent) = agent.upgrade().map(Self) else { return };
                tokio::spawn(async move { agent.continue_answered(&session).await });
            }
        });
    }

    /// Continues turns that were answered in another process, which may have stopped since.
    pub(crate) fn watch_waiting(&self) {
        let agent = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(POLL_INTERVAL).await;
                let Some(agent) = agent.upgrade().map(Self) else { return };
                agent.poll_waiting().await;
            }
        });
    }

    async fn poll_waiting(&self) {
        let requests = self.0.waiting.requests();
        if requests.is_empty() {
            return;
        }
        let ids: Vec<String> = requests.keys().cloned().collect();
        let orchestrator = &self.0.orchestrator;
        let closed = match orchestrator.store().closed_confirmations(&ids, orchestrator.now()).await {
            Ok(closed) => closed,
            Err(error) => {
                return tracing::warn!("could not ask for answers to confirmation requests: {error}");
            }
        };
        let mut sessions: Vec<&String> = closed.iter().filter_map(|id| requests.get(id)).collect();
        sessions.sort();
        sessions.dedup();
        for session in sessions {
            let (agent, session) = (self.clone(), session.clone());
            tokio::spawn(async move { agent.continue_answered(&session).await });
        }
    }

    /// Continues the delegation of a voice session once its calls are answered.
    pub(crate) async fn continue_delegated(&self, session: &str) -> Result<Option<Turn>, Error> {
        loop {
            match self.continue_session(session, ContinueScope::Delegated, None).await? {
                ContinueOutcome::Running => self.wait_for_running(session).await,
                ContinueOutcome::Turn(turn) => return Ok(Some(turn)),
                ContinueOutcome::Nothing => return Ok(None),
            }
        }
    }

    async fn continue_answered(&self, session: &str) {
        loop {
            match self.continue_session(session, ContinueScope::Answered, None).await {
                Ok(ContinueOutcome::Running) => self.wait_for_running(session).await,
                Ok(ContinueOutcome::Turn(_) | ContinueOutcome::Nothing) => return,
                Err(error) => {
                    return tracing::warn!(session, "could not continue a turn after an answer: {error}");
                }
            }
        }
    }

    /// Records the results of a session's calls, and continues its last turn if the scope includes it.
    async fn continue_session(
        &self,
        id: &str,
        wanted: ContinueScope,
        principal: Option<Arc<Principal>>,
    ) -> Result<ContinueOutcome, Error> {
        let session = match self.active_session(id).await {
            Ok(session) => session,
            Err(Error::Store(error)) => return Err(error.into()),
            Err(_) => {
                self.0.waiting.forget(id);
                return Ok(ContinueOutcome::Nothing);
            }
        };
        // The turns of a voice session belong to its bridge.
        if session.mode == Mode::Voice && wanted != ContinueScope::Delegated {
            self.0.waiting.forget(id);
            return Ok(ContinueOutcome::Nothing);
        }
        let conversation = Conversation::load(&self.0.orchestrator, id).await?;
        let logged = conversation.end;
        let Some(conversation) = self.with_missing_events(&session, conversation).await? else {
            return Ok(ContinueOutcome::Running);
        };
        self.0.waiting.watch(id, &conversation);
        let is_stuck =
            wanted == ContinueScope::BetweenSteps { was_resumed: true } && conversation.end == logged;
        let Some(last) = conversation.turns.last().filter(|last| !is_stuck && wanted.includes(last)) else {
            return Ok(ContinueOutcome::Nothing);
        };
        let turn = last.id.to_string();
        match self.open_log(id, &turn, conversation).await? {
            OpenOutcome::Opened(writer) => self.continue_turn(&session, *writer, wanted, principal).await,
            OpenOutcome::Busy(_) => Ok(ContinueOutcome::Running),
        }
    }

    /// Continues the last turn, unless another writer did so before the log was opened.
    async fn continue_turn(
        &self,
        session: &Arc<SessionRecord>,
        mut writer: LogWriter,
        wanted: ContinueScope,
        principal: Option<Arc<Principal>>,
    ) -> Result<ContinueOutcome, Error> {
        let resumed_at = writer.conversation.end;
        let last = writer.conversation.turns.last().filter(|last| wanted.includes(last));
        let Some((turn, context)) = last.map(|last| (last.id.to_string(), Arc::clone(&last.context))) else {
            writer.close().await;
            return Ok(ContinueOutcome::Nothing);
        };
        let run = RunOptions { principal, context, replaces: None };
        let context = match self.run_context(session, &run, &turn).await {
            Ok(context) => context,
            Err(error) => {
                writer.close().await;
                return Err(error);
            }
        };
        commit_events(&mut writer, vec![EventBody::TurnResumed]).await?;
        self.spawn(self.run(writer, context), resumed_at).map(ContinueOutcome::Turn)
    }

    /// Opens the log of a session for a turn. Waits for a writer that only repairs the log.
    pub(crate) async fn open_log(
        &self,
        session: &str,
        turn: &str,
        mut conversation: Conversation,
    ) -> store::Result<OpenOutcome> {
        loop {
            match LogWriter::open(&self.0.orchestrator, session, turn, conversation).await? {
                OpenOutcome::Busy(busy) if busy == RECORDING => tokio::time::sleep(RETRY_INTERVAL).await,
                opening => return Ok(opening),
            }
            // The conversation is read again once the log is open.
            conversation = Conversation::default();
        }
    }

    /// Waits until the turn of a session has ended, in this process or in another.
    pub(crate) async fn wait_for_running(&self, session: &str) {
        let live = self.running().get(session).cloned();
        match live {
            Some(live) => {
                let mut progress = live.progress();
                // An error means that the turn has ended.
                let _ = progress.wait_for(|progress| progress.is_over).await;
                tokio::task::yield_now().await;
            }
            None => tokio::time::sleep(OTHER_PROCESS_INTERVAL).await,
        }
    }
}

/// The result of an attempt to continue a session.
enum ContinueOutcome {
    Turn(Turn),
    /// A turn is running.
    Running,
    /// The last turn has ended, or waits.
    Nothing,
}

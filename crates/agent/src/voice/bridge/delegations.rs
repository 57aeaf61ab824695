//! Delegations of a model without tools. The text agent carries them out in the same session, one after the other;
//! its answer is spoken as commentary. The request is what the user has said since the previous delegation.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use toolwright_contract::Mode;

use super::Bridge;
use crate::agent::{Agent, Turn};
use crate::error::Error;
use crate::event::{EventBody, ToolResultPart, TurnOutcome, UserMessage};
use crate::ids;
use crate::request::{ApprovalAnswer, TurnRequest};
use crate::voice::client::ClientOutput;
use crate::voice::transport::Command;

/// How long to wait for the next piece of the transcript.
const SETTLE: Duration = Duration::from_millis(500);
/// How long to wait for its first piece.
const FIRST_PIECE: Duration = Duration::from_secs(2);
const MAX_TASK_BYTES: usize = 8 << 10;
const MAX_WAITING: usize = 8;
/// Number of remembered ids.
const MAX_KNOWN: usize = 1000;

/// The delegations of a session.
#[derive(Debug)]
pub(super) struct Delegations {
    /// The user's words since the last delegation.
    transcript: String,
    heard_at: Option<Instant>,
    /// Waiting delegations: their ids, their times, and typed text.
    waiting: VecDeque<Waiting>,
    /// The delegation that the agent works on.
    running: Option<Running>,
    /// The ids of the last delegations, oldest first, to recognise repeated ones.
    known: VecDeque<String>,
    /// Calls of delegations that wait for confirmation, by execution id.
    asked: HashSet<String>,
    connection: u32,
    /// The session ends.
    must_stop: bool,
    pub updates: mpsc::UnboundedReceiver<Update>,
    sender: mpsc::UnboundedSender<Update>,
}

#[derive(Debug)]
struct Waiting {
    id: String,
    /// `None` for typed text, which has no delegation.
    connection: Option<u32>,
    since: Instant,
    text: Option<String>,
}

#[derive(Debug, Clone)]
struct Running {
    /// The message id of the agent's turn.
    id: String,
    connection: Option<u32>,
    /// The turn has an event. The agent cannot stop it earlier.
    has_begun: bool,
}

/// A message from the turn that carries out a delegation.
#[derive(Debug)]
pub(super) enum Update {
    Event(EventBody),
    /// The turn has ended or pauses, or could not be started.
    Over(Result<(), String>),
}

impl Delegations {
    pub fn new() -> Self {
        let (sender, updates) = mpsc::unbounded_channel();
        Self {
            transcript: String::new(),
            heard_at: None,
            waiting: VecDeque::new(),
            running: None,
            known: VecDeque::new(),
            asked: HashSet::new(),
            connection: 0,
            must_stop: false,
            updates,
            sender,
        }
    }

    /// Returns false for a repeated delegation.
    fn remember(&mut self, id: &str) -> bool {
        if self.known.iter().any(|known| known == id) {
            return false;
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.pop_front();
        }
        self.known.push_back(id.to_owned());
        true
    }

    pub fn heard(&mut self, text: &str) {
        if self.transcript.len() < MAX_TASK_BYTES {
            self.transcript.push_str(text);
        }
        self.heard_at = Some(Instant::now());
    }

    pub const fn new_connection(&mut self) {
        self.connection += 1;
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.waiting.is_empty()
    }

    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub fn has_asked(&self, execution: &str) -> bool {
        self.asked.contains(execution)
    }

    /// When the next delegation can start: its transcript is complete by then.
    pub fn deadline(&self) -> Option<Instant> {
        if self.running.is_some() {
            return None;
        }
        let next = self.waiting.front()?;
        if next.text.is_some() {
            return Some(next.since);
        }
        Some(match self.heard_at.filter(|_| !self.transcript.trim().is_empty()) {
            Some(heard) => heard.max(next.since) + SETTLE,
            None => next.since + FIRST_PIECE,
        })
    }
}

impl Bridge {
    /// The model delegates. A repeated delegation is ignored.
    pub(super) fn delegated(&mut self, id: String) {
        self.timers.activity();
        if !self.delegations.remember(&id) {
            tracing::warn!(session = self.session.id, delegation = id, "the model delegated a task twice");
            return;
        }
        let connection = Some(self.delegations.connection);
        if self.delegations.waiting.len() >= MAX_WAITING {
            return self.comment(connection, &id, "I cannot take on more right now.".to_owned());
        }
        let since = Instant::now();
        self.delegations.waiting.push_back(Waiting { id, connection, since, text: None });
    }

    /// Typed text: the model does not accept text, so the agent answers it.
    pub(super) async fn delegate_text(&mut self, text: String) {
        let (id, since) = (format!("voice_{}", ids::random()), Instant::now());
        self.delegations.waiting.push_back(Waiting { id, connection: None, since, text: Some(text) });
        self.log.user("");
    }

    pub(super) async fn start_delegation(&mut self) {
        let Some(Waiting { id, connection, text, .. }) = self.delegations.waiting.pop_front() else { return };
        let task = text.unwrap_or_else(|| std::mem::take(&mut self.delegations.transcript));
        self.delegations.heard_at = None;
        let task = task.trim().to_owned();
        if task.is_empty() {
            return self.comment(
                connection,
                &id,
                "I did not catch what you need. Please say it again.".to_owned(),
            );
        }
        // The agent writes this turn to the log.
        self.log.user("");
        self.end_logged_turn().await;
        self.delegations.running = Some(Running { id: id.clone(), connection, has_begun: false });
        let mut request = TurnRequest::message(&self.session.id, UserMessage::text(id, task));
        request.mode = Mode::Voice;
        request.principal = Some(Arc::clone(&self.principal));
        let (agent, updates) = (self.shared.agent.clone(), self.delegations.sender.clone());
        tokio::spawn(async move {
            let turn = agent.start(request).await;
            follow(&agent, turn, &updates).await;
        });
    }

    /// Answers a confirmation request of a delegation: its turn continues.
    pub(super) async fn answer_delegated(&mut self, approval_id: &str, approved: bool) {
        let answer = ApprovalAnswer {
            session: self.session.id.clone(),
            approval_id: approval_id.to_owned(),
            approved,
            reason: None,
            args: None,
            principal: Arc::clone(&self.principal),
        };
        if self.delegations.running.is_none() {
            let id = format!("voice_{}", ids::random());
            self.delegations.running = Some(Running { id, connection: None, has_begun: false });
        }
        let (agent, updates) = (self.shared.agent.clone(), self.delegations.sender.clone());
        tokio::spawn(async move {
            let turn = agent.answer(answer).await;
            let turn = turn.map(|turn| Turn { start: turn.resumed_at, ..turn });
            follow(&agent, turn, &updates).await;
        });
    }

    /// A confirmation request of a delegation was answered through another wire, or has expired: its turn continues.
    pub(super) fn continue_delegated(&self) {
        let (agent, updates) = (self.shared.agent.clone(), self.delegations.sender.clone());
        let session = self.session.id.clone();
        tokio::spawn(async move {
            match agent.continue_delegated(&session).await {
                Ok(Some(turn)) => {
                    let turn = Turn { start: turn.resumed_at, ..turn };
                    follow(&agent, Ok(turn), &updates).await;
                }
                Ok(None) => {}
                Err(error) => follow(&agent, Err(error), &updates).await,
            }
        });
    }

    /// At the end of the session: answers the waiting delegations, and stops the agent; writes finish and are recorded.
    pub(super) async fn stop_delegation(&mut self) {
        // Typed text has no delegation that waits for an answer.
        for Waiting { id, connection, text, .. } in std::mem::take(&mut self.delegations.waiting) {
            if text.is_none() {
                self.comment(connection, &id, "The conversation has ended.".to_owned());
            }
        }
        self.delegations.must_stop = true;
        self.stop_begun_turn().await;
    }

    /// Stops the agent's turn at the end of the session, once it has begun.
    async fn stop_begun_turn(&mut self) {
        let has_begun = self.delegations.running.as_ref().is_some_and(|running| running.has_begun);
        if self.delegations.must_stop
            && has_begun
            && let Err(error) = self.shared.agent.stop(&self.session.id).await
        {
            tracing::warn!(session = self.session.id, "could not stop a delegated task: {error}");
        }
    }

    pub(super) async fn delegation_update(&mut self, update: Update) {
        self.timers.activity();
        match update {
            Update::Event(event) => {
                let running = self.delegations.running.as_mut();
                let is_first =
                    running.is_some_and(|running| !std::mem::replace(&mut running.has_begun, true));
                if is_first {
                    self.stop_begun_turn().await;
                }
                self.delegated_event(event).await;
            }
            Update::Over(Ok(())) => {
                self.delegations.running = None;
                self.refresh().await;
            }
            Update::Over(Err(message)) => {
                tracing::warn!(session = self.session.id, "a delegated task failed: {message}");
                self.say_of_task("Sorry, that did not work.".to_owned());
                self.delegations.running = None;
            }
        }
    }

    async fn delegated_event(&mut self, event: EventBody) {
        match event {
            EventBody::TurnStarted { note: Some(message), .. } => {
                self.send_to_client(ClientOutput::Message { text: Some(message), data: None });
            }
            EventBody::ToolCalled { call, .. } => {
                self.turn.has_calls = true;
                self.send_to_client(ClientOutput::ToolStarted { call_id: call.id, tool: call.tool });
            }
            EventBody::ToolFinished { result } => self.delegated_result(result).await,
            EventBody::ApprovalRequested { approval } => {
                let (call_id, tool) = (approval.call_id.clone(), approval.tool.clone());
                let error = Some("CONFIRMATION_REQUIRED".to_owned());
                self.send_to_client(ClientOutput::ToolFinished { call_id: call_id.clone(), tool, error });
                self.delegations.asked.insert(call_id);
                self.ask_delegated(&approval);
                self.say_of_task(format!("{} Shall I do that, yes or no?", approval.preview));
            }
            EventBody::Text { text, .. } if !text.trim().is_empty() => self.say_of_task(text),
            EventBody::TurnEnded { outcome } => match outcome {
                TurnOutcome::Failed { error } => self.say_of_task(error.message),
                TurnOutcome::Stopped => self.say_of_task("That was stopped.".to_owned()),
                TurnOutcome::StepLimit { .. } => self.say_of_task("I could not finish that.".to_owned()),
                _ => {}
            },
            _ => {}
        }
    }

    async fn delegated_result(&mut self, result: ToolResultPart) {
        let ToolResultPart { call_id, tool, is_error, content, .. } = result;
        let error = is_error
            .then(|| content.get("type").and_then(|kind| kind.as_str()).unwrap_or("INTERNAL").to_owned());
        if self.delegations.asked.remove(&call_id) {
            // Its start was reported with the confirmation request.
            self.send_to_client(ClientOutput::ToolStarted { call_id: call_id.clone(), tool: tool.clone() });
        }
        self.send_to_client(ClientOutput::ToolFinished { call_id, tool, error });
        self.refresh().await;
    }

    /// Speaks a text as the answer to the running delegation.
    fn say_of_task(&mut self, text: String) {
        let Some(Running { id, connection, .. }) = self.delegations.running.clone() else {
            return self.send(Command::Commentary { delegation: None, text });
        };
        self.comment(connection, &id, text);
    }

    /// A delegation id is valid only on the connection that sent it.
    fn comment(&mut self, connection: Option<u32>, id: &str, text: String) {
        let is_current = connection == Some(self.delegations.connection);
        let delegation = is_current.then(|| id.to_owned());
        match &mut self.connection {
            Some(connection) => connection.send(Command::Commentary { delegation, text }),
            None => self.notes.push(text),
        }
    }
}

/// Reports the events of a turn until it ends or pauses. The pieces of one text are reported together.
async fn follow(agent: &Agent, turn: Result<Turn, Error>, updates: &mpsc::UnboundedSender<Update>) {
    let followed = async {
        let turn = turn?;
        let mut events = agent.events(&turn.session, turn.start).await?;
        let mut text = String::new();
        while let Some(event) = events.next().await? {
            let body = match event.body {
                EventBody::Text { text: piece, .. } => {
                    text.push_str(&piece);
                    continue;
                }
                EventBody::PartEnded { part, .. } => {
                    EventBody::Text { part, text: std::mem::take(&mut text) }
                }
                body => body,
            };
            // The session may have ended meanwhile.
            let _ = updates.send(Update::Event(body));
        }
        Ok::<(), Error>(())
    };
    let over = followed.await.map_err(|error| error.to_string());
    let _ = updates.send(Update::Over(over));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_delegations_are_recognised_and_memory_is_bounded() {
        let mut delegations = Delegations::new();
        for number in 0..3 * MAX_KNOWN {
            assert!(delegations.remember(&number.to_string()));
            assert!(!delegations.remember(&number.to_string()));
        }
        assert_eq!(delegations.known.len(), MAX_KNOWN);
    }
}

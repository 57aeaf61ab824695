//! Writes the events of a turn: to its listeners at once, to the store in portions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::{self, ConversationLog, Durability, LogOpening};

use crate::conversation::{Conversation, to_entry};
use crate::event::{Event, EventBody};
use crate::live_turn::{LiveTurn, is_piece};

/// How long streamed text is buffered before it is stored: the maximum that a killed process loses.
const STORE_INTERVAL: Duration = Duration::from_millis(250);

/// The pause between two attempts to close a log.
const CLOSE_RETRY: Duration = Duration::from_secs(1);

/// Turn id of a writer that only repairs the log.
pub(crate) const RECORDING: &str = "";

/// The turn id in a writer's name.
pub(crate) fn turn_of_writer(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, turn)| turn)
}

/// The exclusive writer of a log. Dropping it closes the log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    orchestrator: Orchestrator,
    session: String,
    name: String,
    pub conversation: Conversation,
    pub live: Arc<LiveTurn>,
    turn: Arc<str>,
    unstored: Vec<Event>,
    stored_at: Instant,
}

/// Why the log cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Another writer has taken over; this one must stop.
    #[error("another process writes the conversation")]
    Lost,
}

/// Whether the log was opened.
pub(crate) enum OpenOutcome {
    Opened(Box<LogWriter>),
    /// The turn that is running, or [`RECORDING`].
    Busy(String),
}

impl LogWriter {
    /// Takes the log over from a writer in another process, which then has to stop.
    pub async fn take(orchestrator: &Orchestrator, session: &str, turn: &str) -> store::Result<Self> {
        let name = format!("{}:{turn}", crate::ids::random());
        let end = orchestrator.store().take_log(session, &name).await?;
        let conversation = Conversation::load(orchestrator, session).await?;
        Ok(Self::new(orchestrator, session, turn, name, conversation, end))
    }

    fn new(
        orchestrator: &Orchestrator,
        session: &str,
        turn: &str,
        name: String,
        conversation: Conversation,
        end: u64,
    ) -> Self {
        Self {
            orchestrator: orchestrator.clone(),
            session: session.to_owned(),
            name,
            conversation,
            live: Arc::new(LiveTurn::new(end)),
            turn: turn.into(),
            unstored: Vec::new(),
            stored_at: Instant::now(),
        }
    }

    /// Opens the log of a session for a turn. `conversation` may have been read before other writers appended to it.
    pub async fn open(
        orchestrator: &Orchestrator,
        session: &str,
        turn: &str,
        conversation: Conversation,
    ) -> store::Result<OpenOutcome> {
        let name = format!("{}:{turn}", crate::ids::random());
        let store = orchestrator.store();
        let end = match store.open_log(session, &name).await? {
            LogOpening::Opened { end } => end,
            LogOpening::Busy { writer } => {
                return Ok(OpenOutcome::Busy(turn_of_writer(&writer).to_owned()));
            }
        };
        let mut writer = Self::new(orchestrator, session, turn, name, conversation, end);
        if writer.conversation.end != end {
            writer.conversation = Conversation::load(orchestrator, session).await?;
        }
        Ok(OpenOutcome::Opened(Box::new(writer)))
    }

    /// Writes an event of the writer's turn.
    pub async fn push(&mut self, body: EventBody) -> Result<(), WriteError> {
        let is_due = is_piece(&body) && self.stored_at.elapsed() >= STORE_INTERVAL;
        self.add(Arc::clone(&self.turn), body);
        if is_due { self.store(Durability::Relaxed).await } else { Ok(()) }
    }

    /// Writes events, and returns when they are on disk.
    pub async fn commit(&mut self, bodies: impl IntoIterator<Item = EventBody>) -> Result<(), WriteError> {
        self.extend(bodies);
        self.store(Durability::Committed).await
    }

    /// Writes events that reach the disk with the next commit.
    pub fn extend(&mut self, bodies: impl IntoIterator<Item = EventBody>) {
        for body in bodies {
            self.add(Arc::clone(&self.turn), body);
        }
    }

    /// Writes an event of an earlier turn. It reaches the disk with the next commit.
    pub fn push_to(&mut self, turn: &Arc<str>, body: EventBody) {
        self.add(Arc::clone(turn), body);
    }

    fn add(&mut self, turn: Arc<str>, body: EventBody) {
        let position = self.conversation.end + body.length();
        let event = Event { position, turn, at: self.orchestrator.now(), body };
        self.conversation.apply(&event);
        let is_joined =
            self.unstored.last_mut().is_some_and(|last| last.turn == event.turn && last.extend(&event.body));
        if !is_joined {
            self.unstored.push(event.clone());
        }
        self.live.push(event);
    }

    async fn store(&mut self, durability: Durability) -> Result<(), WriteError> {
        self.stored_at = Instant::now();
        let events = std::mem::take(&mut self.unstored);
        if events.is_empty() {
            return Ok(());
        }
        let entries = events.iter().map(to_entry).collect::<store::Result<Vec<_>>>()?;
        let store = self.orchestrator.store();
        match store.append_log(&self.session, &self.name, entries, durability).await? {
            true => Ok(()),
            false => Err(WriteError::Lost),
        }
    }

    /// Closes the log and ends the run for its listeners.
    pub async fn close(mut self) {
        if let Err(error) = self.store(Durability::Committed).await {
            tracing::error!(session = self.session, "could not store the end of a turn: {error}");
        }
        let name = std::mem::take(&mut self.name);
        if let Err(error) = self.orchestrator.store().close_log(&self.session, &name).await {
            tracing::error!(session = self.session, "could not close a conversation: {error}");
            tokio::spawn(close_later(self.orchestrator.clone(), self.session.clone(), name));
        }
    }
}

/// Closes a log as soon as the store can be reached. Until then its writer seems to run, and nobody else can write it.
async fn close_later(orchestrator: Orchestrator, session: String, name: String) {
    while let Err(error) = orchestrator.store().close_log(&session, &name).await {
        tracing::debug!(session, "could not close a conversation: {error}");
        tokio::time::sleep(CLOSE_RETRY).await;
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.live.finish();
        if self.name.is_empty() {
            return;
        }
        // The task of the turn has panicked or was aborted.
        let (orchestrator, session, name) =
            (self.orchestrator.clone(), std::mem::take(&mut self.session), std::mem::take(&mut self.name));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(close_later(orchestrator, session, name));
        }
    }
}

//! Reads a log from any position, and follows the turn that writes it, in this process or in another.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::{self, ConversationLog};

use crate::conversation::from_entry;
use crate::event::{Event, EventBody};
use crate::live_turn::LiveTurn;

/// How many entries are read at a time.
const PAGE: usize = 256;
/// How often the log of a turn in another process is read.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The events of a session after a position. Ends when no turn runs. Counts as a listener of the turn.
#[derive(Debug)]
pub struct EventStream {
    orchestrator: Orchestrator,
    session: String,
    position: u64,
    ready: VecDeque<Event>,
    live: Option<Arc<LiveTurn>>,
    /// The last event was the end of a turn.
    has_ended: bool,
}

impl EventStream {
    pub(crate) fn new(
        orchestrator: Orchestrator,
        session: String,
        position: u64,
        live: Option<Arc<LiveTurn>>,
    ) -> Self {
        if let Some(live) = &live {
            live.add_listener();
        }
        Self { orchestrator, session, position, ready: VecDeque::new(), live, has_ended: false }
    }

    /// The next event. `None` when all events are read and no turn runs.
    pub async fn next(&mut self) -> store::Result<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.position = event.position;
                self.has_ended = matches!(event.body, EventBody::TurnEnded { .. });
                return Ok(Some(event));
            }
            let is_over = match self.live.clone() {
                Some(live) if self.position >= live.first => self.follow(&live).await,
                _ => self.read_store().await?,
            };
            match self.live.take() {
                // Another process has taken over the log: its end is in the store.
                Some(live) if is_over && !self.has_ended => live.remove_listener(),
                live => {
                    self.live = live;
                    if is_over {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits for events of a turn in this process. Returns true when the turn has ended and all events are read.
    async fn follow(&mut self, live: &LiveTurn) -> bool {
        let mut progress = live.progress();
        let position = self.position;
        let reached = progress.wait_for(|progress| progress.end > position || progress.is_over).await;
        let is_over = reached.is_err() || reached.is_ok_and(|progress| progress.end <= position);
        self.ready.extend(live.events_after(position));
        is_over
    }

    /// Reads stored events. Returns true when there are none and no process writes to the log.
    async fn read_store(&mut self) -> store::Result<bool> {
        let store = self.orchestrator.store();
        // Checked before the entries are read: a writer that closes the log meanwhile has written all of them.
        let writer = store.log_writer(&self.session).await?;
        let entries = store.log_entries(&self.session, self.position, PAGE).await?;
        for entry in &entries {
            self.ready.extend(from_entry(entry)?.suffix_after(self.position));
        }
        match (&self.live, entries.is_empty()) {
            (_, false) => Ok(false),
            // All events before this run of the turn are read.
            (Some(live), true) => {
                self.position = self.position.max(live.first);
                Ok(false)
            }
            (None, true) if writer.is_none() => Ok(true),
            (None, true) => {
                tokio::time::sleep(POLL_INTERVAL).await;
                Ok(false)
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(live) = &self.live {
            live.remove_listener();
        }
    }
}

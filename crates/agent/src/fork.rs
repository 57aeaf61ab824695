//! Branches of a conversation: a client may continue from an earlier answer.

use toolwright_orchestrator::store::{ConversationLog, Durability, LogEntry, LogOpening};

use crate::agent::Agent;
use crate::conversation::from_entry;
use crate::error::Error;
use crate::event::EventBody;

/// How many entries are read at a time.
const PAGE: usize = 512;

/// Where a run of a turn ends in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    /// The position after its last event.
    pub position: u64,
    /// No run follows it.
    pub is_last: bool,
}

impl Agent {
    /// The end of the run whose first event follows this position. `None` when it is running or has no end.
    pub async fn run_end(&self, session: &str, start: u64) -> Result<Option<RunEnd>, Error> {
        let mut end: Option<RunEnd> = None;
        let mut after = start;
        loop {
            let entries = self.0.orchestrator.store().log_entries(session, after, PAGE).await?;
            for entry in &entries {
                after = entry.position;
                match (&mut end, from_entry(entry)?.body) {
                    (None, EventBody::TurnEnded { .. }) => {
                        end = Some(RunEnd { position: after, is_last: true });
                    }
                    (Some(end), EventBody::TurnStarted { .. } | EventBody::TurnResumed) => {
                        end.is_last = false
                    }
                    _ => {}
                }
            }
            if entries.len() < PAGE {
                return Ok(end);
            }
        }
    }

    /// Copies the conversation of a session, up to a position, into a session without one.
    pub async fn fork(&self, from: &str, until: u64, to: &str) -> Result<(), Error> {
        let store = self.0.orchestrator.store();
        let writer = crate::ids::random();
        if let LogOpening::Busy { writer } = store.open_log(to, &writer).await? {
            return Err(Error::Busy { turn: writer });
        }
        let mut after = 0;
        loop {
            let mut entries = store.log_entries(from, after, PAGE).await?;
            let is_full = entries.len() == PAGE;
            entries.retain(|entry: &LogEntry| entry.position <= until);
            let Some(last) = entries.last() else { break };
            after = last.position;
            store.append_log(to, &writer, entries, Durability::Committed).await?;
            if !is_full || after >= until {
                break;
            }
        }
        Ok(store.close_log(to, &writer).await?)
    }
}

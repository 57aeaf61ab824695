//! The conversation logs in memory: who writes them. The entries are in the journal.

use super::{Memory, lock};
use crate::store::conversation::{ConversationLog, LogEntry, LogOpening};
use crate::store::journal::{Change, Journal, LostChanges};
use crate::store::records::Durability;
use crate::store::{Error, Result};

/// A log that is open for writing.
#[derive(Debug)]
pub struct OpenLog {
    writer: String,
}

impl<J: Journal> ConversationLog for Memory<J> {
    async fn open_log(&self, session: &str, writer: &str) -> Result<LogOpening> {
        if !self.shard(session).contains_key(session) {
            return Err(Error::NoSession(session.to_owned()));
        }
        {
            let mut logs = lock(&self.open_logs);
            if let Some(open) = logs.get(session).filter(|open| open.writer != writer) {
                return Ok(LogOpening::Busy { writer: open.writer.clone() });
            }
            logs.insert(session.to_owned(), OpenLog { writer: writer.to_owned() });
        }
        let end = self.stored_log_end(session).await;
        if end.is_err() {
            self.close_log(session, writer).await?;
        }
        Ok(LogOpening::Opened { end: end? })
    }

    async fn take_log(&self, session: &str, writer: &str) -> Result<u64> {
        if !self.shard(session).contains_key(session) {
            return Err(Error::NoSession(session.to_owned()));
        }
        lock(&self.open_logs).insert(session.to_owned(), OpenLog { writer: writer.to_owned() });
        // The writer that has lost the log may be writing.
        self.set_log_end(session, None);
        self.stored_log_end(session).await
    }

    async fn append_log(
        &self,
        session: &str,
        writer: &str,
        entries: Vec<LogEntry>,
        durability: Durability,
    ) -> Result<bool> {
        let Some(last) = entries.last().map(|entry| entry.position) else { return Ok(true) };
        let written = {
            let logs = lock(&self.open_logs);
            if logs.get(session).is_none_or(|open| open.writer != writer) {
                return Ok(false);
            }
            self.set_log_end(session, None);
            self.journal.write(Change::Log { session: session.to_owned(), entries }, durability)
        };
        written.wait().await?;
        let logs = lock(&self.open_logs);
        if durability == Durability::Committed && logs.get(session).is_some_and(|open| open.writer == writer)
        {
            self.set_log_end(session, Some(last));
        }
        Ok(true)
    }

    async fn close_log(&self, session: &str, writer: &str) -> Result<()> {
        let mut logs = lock(&self.open_logs);
        if logs.get(session).is_some_and(|open| open.writer == writer) {
            logs.remove(session);
        }
        Ok(())
    }

    async fn log_entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        match self.known_log_end(session) {
            Some(end) if end <= after => return Ok(Vec::new()),
            Some(_) => {}
            // Entries may still be in the queue.
            None => self.journal.flush(LostChanges::Ignore).wait().await?,
        }
        self.journal.log_entries(session, after, limit).await
    }

    async fn last_log_entries(&self, after: &str, limit: usize) -> Result<Vec<(String, LogEntry)>> {
        self.journal.last_log_entries(after, limit).await
    }

    async fn log_writer(&self, session: &str) -> Result<Option<String>> {
        Ok(lock(&self.open_logs).get(session).map(|open| open.writer.clone()))
    }
}

impl<J: Journal> Memory<J> {
    /// The end of a log, if all of its entries are on disk and it is known.
    fn known_log_end(&self, session: &str) -> Option<u64> {
        self.shard(session).get(session)?.log_end
    }

    fn set_log_end(&self, session: &str, end: Option<u64>) {
        if let Some(entry) = self.shard(session).get_mut(session) {
            entry.log_end = end;
        }
    }

    /// The end of a log: as it is known, or as it is on disk.
    async fn stored_log_end(&self, session: &str) -> Result<u64> {
        match self.known_log_end(session) {
            Some(end) => Ok(end),
            None => self.journal.log_end(session).await,
        }
    }
}

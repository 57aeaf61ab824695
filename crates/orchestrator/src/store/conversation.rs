//! The conversation logs: per session, entries that are appended and never changed. One writer at a time, here or in
//! another process; any number of readers.
//!
//! # Rules
//!
//! - **A log has one writer.** [`ConversationLog::open_log`] succeeds while no other writer has it open, or when the
//!   process of the writer is gone. Entries of a writer that has lost the log are refused.
//! - **Entries are appended in order**, those of one call as a whole or not at all.
//! - **A log is deleted with its session.**

use std::future::Future;
use std::sync::Arc;

use super::{Durability, Result, Store};

/// An entry of a log. The store does not read its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The position after the entry; larger than that of the entry before it.
    pub position: u64,
    pub body: Arc<str>,
}

/// Whether a log was opened for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOpening {
    /// The position of its last entry; 0 when it is empty.
    Opened { end: u64 },
    /// Another writer has it open.
    Busy { writer: String },
}

/// The operations on conversation logs.
pub trait ConversationLog: Send + Sync {
    /// Opens the log of a session for a writer of this name, which no other writer may have. Relaxed.
    fn open_log(&self, session: &str, writer: &str) -> impl Future<Output = Result<LogOpening>> + Send;

    /// Takes the log over from its current writer, to stop one in another process: its entries are refused from now on.
    /// Returns the position of the last entry. Relaxed.
    fn take_log(&self, session: &str, writer: &str) -> impl Future<Output = Result<u64>> + Send;

    /// Appends entries. False when this writer does not have the log open (any more).
    fn append_log(
        &self,
        session: &str,
        writer: &str,
        entries: Vec<LogEntry>,
        durability: Durability,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Closes the log, if this writer has it open. Relaxed.
    fn close_log(&self, session: &str, writer: &str) -> impl Future<Output = Result<()>> + Send;

    /// Up to `limit` entries after this position.
    fn log_entries(
        &self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<LogEntry>>> + Send;

    /// The last entries of up to `limit` logs, in an order of their sessions that never changes, after this session;
    /// from the first one if it is empty. Sessions without entries are left out.
    fn last_log_entries(
        &self,
        after: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(String, LogEntry)>>> + Send;

    /// The writer that has the log open, if its process is alive.
    fn log_writer(&self, session: &str) -> impl Future<Output = Result<Option<String>>> + Send;
}

/// Calls the back end. PostgreSQL's futures are large, and wait for a network anyway: they are boxed.
macro_rules! dispatch {
    ($self:ident, $store:ident => $call:expr) => {
        match $self {
            Store::Memory($store) => $call.await,
            Store::Sqlite($store) => $call.await,
            Store::Postgres($store) => Box::pin($call).await,
        }
    };
}

impl ConversationLog for Store {
    async fn open_log(&self, session: &str, writer: &str) -> Result<LogOpening> {
        dispatch!(self, store => store.open_log(session, writer))
    }

    async fn take_log(&self, session: &str, writer: &str) -> Result<u64> {
        dispatch!(self, store => store.take_log(session, writer))
    }

    async fn append_log(
        &self,
        session: &str,
        writer: &str,
        entries: Vec<LogEntry>,
        durability: Durability,
    ) -> Result<bool> {
        dispatch!(self, store => store.append_log(session, writer, entries, durability))
    }

    async fn close_log(&self, session: &str, writer: &str) -> Result<()> {
        dispatch!(self, store => store.close_log(session, writer))
    }

    async fn log_entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        dispatch!(self, store => store.log_entries(session, after, limit))
    }

    async fn last_log_entries(&self, after: &str, limit: usize) -> Result<Vec<(String, LogEntry)>> {
        dispatch!(self, store => store.last_log_entries(after, limit))
    }

    async fn log_writer(&self, session: &str) -> Result<Option<String>> {
        dispatch!(self, store => store.log_writer(session))
    }
}

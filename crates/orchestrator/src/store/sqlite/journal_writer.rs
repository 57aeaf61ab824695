//! The journal in the file: one thread writes, and one commit serves all waiters.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::batch::{AuditEnd, Batch};
use super::fault_injection::{Fault, FaultSwitch};
use super::write_queue::{QueuedWrite, WriteOperation, WriteQueue};
use super::{conversation_rows, sqlite_audit, sqlite_rows};
use crate::store::audit_gap::AuditGap;
use crate::store::audit_query::{AuditPage, AuditQuery};
use crate::store::chain::Chain;
use crate::store::conversation::LogEntry;
use crate::store::journal::{AuditText, Change, Journal, LostChanges, PendingWrite};
use crate::store::records::{AuditRow, Durability, ExecutionRecord, ExecutionStatus, MinuteRecord};
use crate::store::{Error, Result};

/// After this many changes the log is copied back into the file, between two commits.
const CHANGES_PER_CHECKPOINT: usize = 4_096;
/// The longest delay of a commit for callers that are about to write again.
const MAX_COMMIT_DELAY: Duration = Duration::from_millis(1);

/// Queues changes for the writer thread, and reads what was evicted from memory.
#[derive(Debug)]
pub struct SqliteJournal {
    queue: Arc<WriteQueue>,
    reader: Arc<Mutex<Connection>>,
    /// For pages of the audit.
    page_reader: Arc<Mutex<Connection>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl SqliteJournal {
    pub(super) fn new(reader: Arc<Mutex<Connection>>, page_reader: Arc<Mutex<Connection>>) -> Self {
        Self { queue: Arc::default(), reader, page_reader, thread: Mutex::default() }
    }

    pub(super) const fn queue(&self) -> &Arc<WriteQueue> {
        &self.queue
    }

    /// Starts the writer thread.
    pub(super) fn start(&self, writer: WriterThread) -> Result<()> {
        let thread = thread::Builder::new().name("toolwright-store".to_owned()).spawn(|| writer.run());
        let thread = thread.map_err(|cause| Error::Unavailable(cause.to_string()))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Waits until the queue is written and the lock is released, so that the file can be opened again.
    pub(super) fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // If it panicked, its waiters have got an error.
            let _ = thread.join();
        }
    }

    async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        read_with(&self.reader, read).await
    }
}

/// Reads through a connection, on a thread that may block.
async fn read_with<T, F>(connection: &Arc<Mutex<Connection>>, read: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T> + Send + 'static,
{
    let connection = Arc::clone(connection);
    let task =
        tokio::task::spawn_blocking(move || read(&connection.lock().unwrap_or_else(PoisonError::into_inner)));
    task.await.map_err(|cause| Error::Unavailable(cause.to_string()))?
}

impl Journal for SqliteJournal {
    fn write(&self, change: Change, durability: Durability) -> PendingWrite {
        self.queue.push(change, durability)
    }

    fn flush(&self, lost: LostChanges) -> PendingWrite {
        self.queue.push_flush(lost)
    }

    fn serialize(&self, envelope: &Envelope) -> Result<String> {
        let mut text = Vec::with_capacity(512);
        envelope.write(&mut text);
        String::from_utf8(text).map_err(|cause| Error::Corrupt(cause.to_string()))
    }

    async fn execution(
        &self,
        number: u64,
        session: &str,
        execution: &str,
    ) -> Result<Option<ExecutionRecord>> {
        let find = || {
            let (session, execution) = (session.to_owned(), execution.to_owned());
            self.read(move |connection| sqlite_rows::execution(connection, number, &session, &execution))
        };
        match find().await? {
            Some(record) if matches!(record.status, ExecutionStatus::Finished(_)) => Ok(Some(record)),
            _ => {
                // It was evicted before it was on disk.
                self.flush(LostChanges::Ignore).wait().await?;
                find().await
            }
        }
    }

    async fn toolset(&self, id: &str) -> Result<Option<Arc<[u8]>>> {
        let id = id.to_owned();
        self.read(move |connection| sqlite_rows::toolset(connection, &id)).await
    }

    async fn minutes(&self, from: i64) -> Result<Vec<MinuteRecord>> {
        self.flush(LostChanges::Ignore).wait().await?;
        read_with(&self.page_reader, move |connection| sqlite_rows::minutes(connection, from)).await
    }

    async fn log_entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        let session = session.to_owned();
        self.read(move |connection| conversation_rows::read(connection, &session, after, limit)).await
    }

    async fn log_end(&self, session: &str) -> Result<u64> {
        self.flush(LostChanges::Ignore).wait().await?;
        let session = session.to_owned();
        self.read(move |connection| conversation_rows::last_position(connection, &session)).await
    }

    async fn last_log_entries(&self, after: &str, limit: usize) -> Result<Vec<(String, LogEntry)>> {
        self.flush(LostChanges::Ignore).wait().await?;
        let after = after.to_owned();
        self.read(move |connection| conversation_rows::last_entries(connection, &after, limit)).await
    }

    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        self.read(move |connection| sqlite_rows::audit_rows(connection, after, limit)).await
    }

    async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage> {
        // Entries may still be in the queue.
        self.flush(LostChanges::Ignore).wait().await?;
        let query = query.clone();
        read_with(&self.page_reader, move |connection| sqlite_audit::read(connection, &query)).await
    }
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        self.close();
    }
}

/// The state of the writer thread.
#[derive(Debug)]
pub struct WriterThread {
    queue: Arc<WriteQueue>,
    connection: Connection,
    end: AuditEnd,
    faults: FaultSwitch,
    /// Why a change without a waiter was lost, since the last flush.
    lost: Option<Error>,
    /// The audit entries that were lost, with or without a waiter, since the last entry about a gap.
    gap: AuditGap,
    changes_since_checkpoint: usize,
    /// Dropped last: the lock is held until the last write.
    _lock: File,
}

impl Drop for WriterThread {
    /// Fails all waiters, also if the thread panics.
    fn drop(&mut self) {
        self.queue.abort();
    }
}

impl WriterThread {
    /// Continues the audit chain of the file: only one process writes at a time, so there is one chain.
    pub fn new(
        queue: &Arc<WriteQueue>,
        connection: Connection,
        faults: FaultSwitch,
        lock: File,
    ) -> Result<Self> {
        let segment = sqlite_audit::index_rest(&connection)?;
        let end = match sqlite_rows::end_of_audit(&connection)? {
            Some((number, chain)) => AuditEnd { next: number + 1, chain, segment },
            None => AuditEnd { next: 1, chain: Chain::new(hex(&crate::ids::random::<8>())), segment },
        };
        let (queue, lost) = (Arc::clone(queue), None);
        let gap = AuditGap::default();
        Ok(Self { queue, connection, end, faults, lost, gap, changes_since_checkpoint: 0, _lock: lock })
    }

    fn run(mut self) {
        let (mut expected_waiters, mut delay) = (0, Duration::ZERO);
        while let Some(batch) = self.queue.take(expected_waiters, delay) {
            if self.faults.is(Fault::WriterDies) {
                // Before the waiters of this batch learn of it.
                self.queue.abort();
                return;
            }
            expected_waiters = batch.iter().filter(|write| write.is_awaited()).count();
            let start = Instant::now();
            self.write(batch);
            delay = (start.elapsed() / 4).min(MAX_COMMIT_DELAY);
            if self.changes_since_checkpoint >= CHANGES_PER_CHECKPOINT {
                self.checkpoint("PASSIVE");
            }
        }
        self.write_gap();
        // The file of a stopped server is complete without its log.
        self.checkpoint("TRUNCATE");
    }

    /// Writes a batch in one transaction; if that fails, each change in its own.
    fn write(&mut self, batch: Vec<QueuedWrite>) {
        self.write_gap();
        match self.transaction(batch.iter().filter_map(QueuedWrite::change)) {
            Ok(()) => batch.into_iter().for_each(|write| self.complete(write, Ok(()))),
            Err(_) => {
                for write in batch {
                    let outcome = self.transaction(write.change().into_iter());
                    self.complete(write, outcome);
                }
            }
        }
    }

    /// Writes how many audit entries were lost. It has its own transaction: if it fails, other changes may succeed.
    fn write_gap(&mut self) {
        if self.gap.is_empty() {
            return;
        }
        let change = Change::Audit(AuditText::new(&self.gap.entry()));
        if self.transaction(std::iter::once(&change)).is_ok() {
            tracing::warn!("{} audit entries were lost; the audit says so", self.gap.entries);
            self.gap = AuditGap::default();
        }
    }

    fn complete(&mut self, write: QueuedWrite, outcome: Result<()>) {
        if let (Some(change), Err(_)) = (write.change(), &outcome)
            && let Some(entry) = change.audit_entry()
        {
            self.gap.add(&entry);
        }
        match (&write.operation, outcome) {
            (WriteOperation::Flush(LostChanges::Report), Ok(())) => {
                write.complete(self.lost.take().map_or(Ok(()), Err))
            }
            (WriteOperation::Write(change), Err(error)) if !write.is_awaited() => {
                let subject = change.subject();
                tracing::error!(%error, subject, "could not write a change to the state file");
                self.lost = Some(error);
            }
            (_, outcome) => write.complete(outcome),
        }
    }

    /// Applies all of these changes or none.
    fn transaction<'a>(&mut self, changes: impl Iterator<Item = &'a Change>) -> Result<()> {
        let mut changes = changes.peekable();
        if changes.peek().is_none() {
            return Ok(());
        }
        // Rolled back when it is dropped.
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        self.faults.on_begin(&transaction)?;
        let mut batch = Batch::new(&transaction, self.end.clone())?;
        let mut count = 0;
        for change in changes {
            batch.apply(change)?;
            count += 1;
        }
        let end = batch.finish()?;
        self.faults.on_commit()?;
        transaction.commit()?;
        self.end = end;
        self.changes_since_checkpoint += count;
        Ok(())
    }

    /// Copies the write-ahead log back into the file.
    fn checkpoint(&mut self, mode: &str) {
        self.changes_since_checkpoint = 0;
        let copied = self.connection.pragma_update_and_check(None, "wal_checkpoint", mode, |_| Ok(()));
        if let Err(error) = copied {
            // Nothing is lost: the log grows.
            tracing::warn!(%error, "could not checkpoint the state file");
        }
    }
}

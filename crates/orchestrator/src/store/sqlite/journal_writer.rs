//! The journal in the file: one thread writes, and one commit serves all waiters.

use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::batch::{AuditEnd, Batch};
use super::fault_injection::{Fault, FaultSwitch};
use super::sqlite_rows;
use super::write_queue::{QueuedTask, Task, WriteQueue};
use crate::store::chain::Chain;
use crate::store::journal::{Change, Journal, LostChanges, PendingWrite};
use crate::store::records::{AuditRow, Durability, ExecutionRecord, ExecutionStatus};
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
    thread: OnceLock<JoinHandle<()>>,
}

impl SqliteJournal {
    pub(super) fn new(reader: Arc<Mutex<Connection>>) -> Self {
        Self { queue: Arc::default(), reader, thread: OnceLock::new() }
    }

    pub(super) const fn queue(&self) -> &Arc<WriteQueue> {
        &self.queue
    }

    /// Starts the writer thread.
    pub(super) fn start(&self, writer: WriterThread) -> Result<()> {
        let thread = thread::Builder::new().name("toolwright-store".to_owned()).spawn(|| writer.run());
        let thread = thread.map_err(|cause| Error::Unavailable(cause.to_string()))?;
        // A store is started once.
        let _ = self.thread.set(thread);
        Ok(())
    }

    async fn read<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let reader = Arc::clone(&self.reader);
        let task =
            tokio::task::spawn_blocking(move || read(&reader.lock().unwrap_or_else(PoisonError::into_inner)));
        task.await.map_err(|cause| Error::Unavailable(cause.to_string()))?
    }
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

    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        self.read(move |connection| sqlite_rows::audit_rows(connection, after, limit)).await
    }
}

impl Drop for SqliteJournal {
    /// Waits until the queue is written and the lock is released, so that the file can be opened again.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // If it panicked, its waiters have got an error.
            let _ = thread.join();
        }
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
        let end = match sqlite_rows::end_of_audit(&connection)? {
            Some((number, chain)) => AuditEnd { next: number + 1, chain },
            None => AuditEnd { next: 1, chain: Chain::new(hex(&crate::ids::random::<8>())) },
        };
        let (queue, lost) = (Arc::clone(queue), None);
        Ok(Self { queue, connection, end, faults, lost, changes_since_checkpoint: 0, _lock: lock })
    }

    fn run(mut self) {
        let (mut expected_waiters, mut delay) = (0, Duration::ZERO);
        while let Some(batch) = self.queue.take(expected_waiters, delay) {
            if self.faults.is(Fault::WriterDies) {
                // Before the waiters of this batch learn of it.
                self.queue.abort();
                return;
            }
            expected_waiters = batch.iter().filter(|task| task.is_awaited()).count();
            let start = Instant::now();
            self.write(batch);
            delay = (start.elapsed() / 4).min(MAX_COMMIT_DELAY);
            if self.changes_since_checkpoint >= CHANGES_PER_CHECKPOINT {
                self.checkpoint("PASSIVE");
            }
        }
        // The file of a stopped server is complete without its log.
        self.checkpoint("TRUNCATE");
    }

    /// Writes a batch in one transaction; if that fails, each change in its own.
    fn write(&mut self, batch: Vec<QueuedTask>) {
        match self.transaction(batch.iter().filter_map(QueuedTask::change)) {
            Ok(()) => batch.into_iter().for_each(|task| self.complete(task, Ok(()))),
            Err(_) => {
                for task in batch {
                    let outcome = self.transaction(task.change().into_iter());
                    self.complete(task, outcome);
                }
            }
        }
    }

    fn complete(&mut self, task: QueuedTask, outcome: Result<()>) {
        match (&task.task, outcome) {
            (Task::Flush(LostChanges::Report), Ok(())) => task.complete(self.lost.take().map_or(Ok(()), Err)),
            (Task::Write(change), Err(error)) if !task.is_awaited() => {
                let subject = change.subject();
                tracing::error!(%error, subject, "could not write a change to the state file");
                self.lost = Some(error);
            }
            (_, outcome) => task.complete(outcome),
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

//! The journal in the file: one thread writes, and one commit serves all waiters.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::batch::{AuditEnd, Batch};
use super::fault_injection::{Fault, FaultSwitch};
use super::sqlite_rows::{self, StoredExecution};
use super::state_file::FileLock;
use super::write_queue::{QueuedTask, Task, WriteQueue};
use crate::store::chain::Chain;
use crate::store::journal::{Change, Journal, PendingWrite};
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

    /// Starts the writer thread, which holds the file's lock until its last write.
    pub(super) fn start(&self, writer: WriterThread, lock: FileLock) -> Result<()> {
        let queue = Arc::clone(&self.queue);
        let run = move || {
            // Fails all waiters, also if the thread panics.
            let _abort = AbortOnDrop(&queue);
            writer.run(&queue);
            drop(lock);
        };
        let thread = thread::Builder::new().name("toolwright-store".to_owned()).spawn(run);
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

struct AbortOnDrop<'a>(&'a WriteQueue);

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Journal for SqliteJournal {
    fn write(&self, change: Change, durability: Durability) -> PendingWrite {
        self.queue.push(change, durability)
    }

    fn flush(&self) -> PendingWrite {
        self.queue.push_flush()
    }

    fn drain(&self) -> PendingWrite {
        self.queue.push_drain()
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
            StoredExecution::Other => return Ok(None),
            StoredExecution::Found(record) if matches!(record.status, ExecutionStatus::Finished(_)) => {
                return Ok(Some(record));
            }
            // It was evicted before it was on disk.
            _ => self.drain().wait().await?,
        }
        match find().await? {
            StoredExecution::Found(record) => Ok(Some(record)),
            StoredExecution::Other | StoredExecution::NotFound => Ok(None),
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
    connection: Connection,
    end: AuditEnd,
    faults: FaultSwitch,
    /// Why a change without a waiter was lost, since the last flush.
    lost: Option<Error>,
    changes_since_checkpoint: usize,
}

impl WriterThread {
    /// Continues the audit chain of the file: only one process writes at a time, so there is one chain.
    pub fn new(connection: Connection, faults: FaultSwitch) -> Result<Self> {
        let end = match sqlite_rows::end_of_audit(&connection)? {
            Some((number, chain)) => AuditEnd { next: number + 1, chain },
            None => AuditEnd { next: 1, chain: Chain::new(hex(&crate::ids::random::<8>())) },
        };
        Ok(Self { connection, end, faults, lost: None, changes_since_checkpoint: 0 })
    }

    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    fn run(mut self, queue: &WriteQueue) {
        let (mut expected_waiters, mut delay) = (0, Duration::ZERO);
        while let Some(batch) = queue.take(expected_waiters, delay) {
            if self.faults.is(Fault::WriterDies) {
                queue.abort();
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
            Err(error) if batch.len() == 1 => {
                batch.into_iter().for_each(|task| self.complete(task, Err(error.clone())));
            }
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
            (Task::Flush, Ok(())) => {
                let outcome = self.lost.take().map_or(Ok(()), Err);
                task.complete(outcome);
            }
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
        match self.attempt(changes) {
            Ok((count, end)) => {
                self.end = end;
                self.changes_since_checkpoint += count;
                Ok(())
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn attempt<'a>(&self, changes: impl Iterator<Item = &'a Change>) -> Result<(usize, AuditEnd)> {
        self.roll_back();
        self.execute("BEGIN IMMEDIATE")?;
        self.faults.on_begin(&self.connection)?;
        let mut batch = Batch::new(&self.connection, self.end.clone())?;
        let mut count = 0;
        for change in changes {
            batch.apply(change)?;
            count += 1;
        }
        let end = batch.finish()?;
        self.faults.on_commit()?;
        self.execute("COMMIT")?;
        Ok((count, end))
    }

    /// Some failures end the transaction, others do not.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "could not roll back a failed transaction of the state file");
        }
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

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

//! The journal in the file: one thread writes, and one commit serves all who wait for it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::apply::{AuditEnd, Batch};
use super::fault::{Fault, Faults};
use super::file::Lock;
use super::queue::{Item, Queue, Task};
use super::{Sqlite, rows};
use crate::store::chain::Chain;
use crate::store::journal::{Change, Journal, Written};
use crate::store::records::{AuditRow, Durability, Standing, Status};
use crate::store::{Error, Result};

/// After so many changes the log is copied back into the file, between two commits. Little and often, as for [`Queue`].
const CHANGES_PER_CHECKPOINT: usize = 4_096;
/// The longest that a commit is put off for those who are about to come.
const MOST_PATIENCE: Duration = Duration::from_millis(1);

/// Takes changes, and reads back what has left memory.
#[derive(Debug)]
pub struct Writer {
    queue: Arc<Queue>,
    reader: Arc<Mutex<Connection>>,
    thread: OnceLock<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn idle(reader: Arc<Mutex<Connection>>) -> Self {
        Self { queue: Arc::default(), reader, thread: OnceLock::new() }
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

impl Sqlite {
    /// Starts to write. The lock goes with the thread: the file is free when nothing is written to it any more.
    pub(super) fn serve(&self, scribe: Scribe, lock: Lock) -> Result<()> {
        let writer = self.journal();
        let queue = Arc::clone(&writer.queue);
        let run = move || {
            // Also when it panics, nobody may wait for ever.
            let _abandon = Abandon(&queue);
            scribe.run(&queue);
            drop(lock);
        };
        let thread = thread::Builder::new().name("toolwright-store".to_owned()).spawn(run);
        let thread = thread.map_err(|cause| Error::Unavailable(cause.to_string()))?;
        // It is the first: a store is served once.
        let _ = writer.thread.set(thread);
        Ok(())
    }
}

struct Abandon<'a>(&'a Queue);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Journal for Writer {
    fn write(&self, change: Change, durability: Durability) -> Written {
        self.queue.push(change, durability)
    }

    fn flush(&self) -> Written {
        self.queue.push_flush()
    }

    fn caught_up(&self) -> Written {
        self.queue.push_catch_up()
    }

    fn text(&self, envelope: &Envelope) -> Result<String> {
        let mut text = Vec::with_capacity(512);
        envelope.write(&mut text);
        String::from_utf8(text).map_err(|cause| Error::Corrupt(cause.to_string()))
    }

    async fn call(&self, number: u64, session: &str, execution: &str) -> Result<Option<Standing>> {
        let look = || {
            let (session, execution) = (session.to_owned(), execution.to_owned());
            self.read(move |connection| rows::call(connection, number, &session, &execution))
        };
        match look().await? {
            rows::Call::Other => return Ok(None),
            rows::Call::Known(standing) if matches!(standing.status, Status::Finished(_)) => {
                return Ok(Some(standing));
            }
            // It left memory before it was on disk.
            _ => self.caught_up().wait().await?,
        }
        match look().await? {
            rows::Call::Known(standing) => Ok(Some(standing)),
            rows::Call::Other | rows::Call::Unknown => Ok(None),
        }
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        self.read(move |connection| rows::audit(connection, after, limit)).await
    }
}

impl Drop for Writer {
    /// Waits until what was queued is written and the lock is free: a store that is opened next must find both.
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // If it panicked, whoever waited knows.
            let _ = thread.join();
        }
    }
}

/// The one who writes.
#[derive(Debug)]
pub struct Scribe {
    connection: Connection,
    end: AuditEnd,
    faults: Faults,
    /// Why something that nobody waited for was lost, since the last flush.
    lost: Option<Error>,
    /// Changes since the log was last copied back.
    changes: usize,
}

impl Scribe {
    /// Goes on with the audit where the process before stopped: only one writes at a time, so the file has one chain.
    pub fn new(connection: Connection, faults: Faults) -> Result<Self> {
        let end = match rows::end_of_audit(&connection)? {
            Some((number, chain)) => AuditEnd { next: number + 1, chain },
            None => AuditEnd { next: 1, chain: Chain::new(hex(&crate::ids::random::<8>())) },
        };
        Ok(Self { connection, end, faults, lost: None, changes: 0 })
    }

    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    fn run(mut self, queue: &Queue) {
        let (mut expected, mut patience) = (0, Duration::ZERO);
        while let Some(batch) = queue.take(expected, patience) {
            if self.faults.is(Fault::Dies) {
                queue.abandon();
                return;
            }
            expected = batch.iter().filter(|item| item.is_awaited()).count();
            let begun = Instant::now();
            self.write(batch);
            patience = (begun.elapsed() / 4).min(MOST_PATIENCE);
            if self.changes >= CHANGES_PER_CHECKPOINT {
                self.tidy("PASSIVE");
            }
        }
        // Whoever copies the file of a server that was stopped gets all of it.
        self.tidy("TRUNCATE");
    }

    /// One transaction for all; when that fails, one for each.
    fn write(&mut self, batch: Vec<Item>) {
        match self.transaction(batch.iter().filter_map(Item::change)) {
            Ok(()) => batch.into_iter().for_each(|item| self.done(item, Ok(()))),
            Err(error) if batch.len() == 1 => {
                batch.into_iter().for_each(|item| self.done(item, Err(error.clone())))
            }
            Err(_) => {
                for item in batch {
                    let outcome = self.transaction(item.change().into_iter());
                    self.done(item, outcome);
                }
            }
        }
    }

    fn done(&mut self, item: Item, outcome: Result<()>) {
        match (&item.task, outcome) {
            (Task::Flush, Ok(())) => {
                let outcome = self.lost.take().map_or(Ok(()), Err);
                item.answer(outcome);
            }
            (Task::Write(change), Err(error)) if !item.is_awaited() => {
                let subject = change.subject();
                tracing::error!(%error, subject, "a change that nobody waited for was lost");
                self.lost = Some(error);
            }
            (_, outcome) => item.answer(outcome),
        }
    }

    /// All of these changes or none.
    fn transaction<'a>(&mut self, changes: impl Iterator<Item = &'a Change>) -> Result<()> {
        let mut changes = changes.peekable();
        if changes.peek().is_none() {
            return Ok(());
        }
        match self.attempt(changes) {
            Ok((count, end)) => {
                self.end = end;
                self.changes += count;
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
        self.faults.begin(&self.connection)?;
        let mut batch = Batch::new(&self.connection, self.end.clone())?;
        let mut count = 0;
        for change in changes {
            batch.apply(change)?;
            count += 1;
        }
        let end = batch.finish()?;
        self.faults.commit()?;
        self.execute("COMMIT")?;
        Ok((count, end))
    }

    /// Some failures have ended the transaction, others have not.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction cannot be rolled back yet");
        }
    }

    /// Copies the log back into the file. Nobody waits for it but the next commit.
    fn tidy(&mut self, mode: &str) {
        self.changes = 0;
        let copied = self.connection.pragma_update_and_check(None, "wal_checkpoint", mode, |_| Ok(()));
        if let Err(error) = copied {
            // Nothing is lost: the log goes on.
            tracing::warn!(%error, "the store's log cannot be copied back into its file");
        }
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

//! The SQLite file with drafts and events. Several processes may use it at once; every change is one transaction that
//! checks its own preconditions.

mod hold;
mod rows;
mod schema;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::records::{Draft, Event, Owner, Reservation};
use crate::span::Span;

pub use hold::{HoldOutcome, HoldRequest};

/// How long to wait for the lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after their expiry unused drafts are deleted.
const DRAFT_RETENTION: chrono::Duration = chrono::Duration::days(7);

/// Why an operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no draft with this id")]
    NotFound,
    #[error("the draft has expired")]
    Expired,
    #[error("the draft has only {0} slots, counted from 0")]
    NoSuchSlot(usize),
    #[error("the draft has already become the event {0}")]
    Used(String),
    #[error("another call is committing this draft")]
    InProgress,
    #[error("the time is no longer free")]
    Taken,
    #[error("the calendar's file is not available: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    File(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// Which events of the file block a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockingEvents {
    All,
    /// Only held events; booked events are on the CalDAV server.
    HeldOnly,
}

/// A connection to the file, shared by all calls of a process.
#[derive(Debug, Clone)]
pub struct Store(Arc<Mutex<Connection>>);

impl Store {
    /// Opens the file or creates it.
    pub fn open(path: &Path) -> Result<Self> {
        create_private_file(path)
            .map_err(|cause| Error::File(format!("could not create {}: {cause}", path.display())))?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(LOCK_TIMEOUT)?;
        // A reported event must survive a power failure.
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        // After every commit the log is copied back, so that a copy of the file alone is complete. Commits are rare.
        connection.pragma_update(None, "wal_autocheckpoint", 1)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::apply(&mut connection)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Runs `work` off the async threads.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = self.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(done) => done,
            Err(error) => Err(Error::File(format!("the task with the file failed: {error}"))),
        }
    }

    /// Runs `work` in a transaction that locks the file from its start.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    fn execute(&self, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        self.read(|connection| Ok(connection.execute(sql, values).map(drop)?))
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        work(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Inserts a draft, and deletes drafts that expired long ago.
    pub fn insert_draft(&self, draft: &Draft) -> Result<()> {
        self.write(|transaction| {
            let old = (draft.created - DRAFT_RETENTION).timestamp_millis();
            let delete = "DELETE FROM drafts WHERE expires < ?1 AND id NOT IN (SELECT draft FROM events)";
            transaction.execute(delete, [old])?;
            rows::insert_draft(transaction, draft)
        })
    }

    /// A draft of this owner, with its event if there is one.
    pub fn find_draft(&self, owner: &Owner, id: &str) -> Result<(Draft, Option<Reservation>)> {
        self.read(|connection| Ok((rows::draft(connection, owner, id)?, rows::reservation(connection, id)?)))
    }

    /// The busy times of an attendee in a window.
    pub fn busy(
        &self,
        address: &str,
        window: Span,
        events: BlockingEvents,
        now: DateTime<Utc>,
    ) -> Result<Vec<Span>> {
        self.read(|connection| rows::busy(connection, address, window, events, now, ""))
    }

    /// The booked events that begin in a window, sorted by their start.
    pub fn events(&self, window: Span) -> Result<Vec<Event>> {
        self.read(|connection| rows::events(connection, window))
    }

    /// Checks again that the time is free, and holds or books it.
    pub fn hold(&self, request: &HoldRequest) -> Result<HoldOutcome> {
        self.write(|transaction| request.execute(transaction))
    }

    /// Records the meeting of a held event.
    pub fn record_meeting(&self, event: &str, meeting: &str, link: &str) -> Result<()> {
        let sql = "UPDATE events SET meeting = ?2, conference = ?3 WHERE id = ?1";
        self.execute(sql, (event, meeting, link))
    }

    /// Turns a held event into a booked one.
    pub fn book(&self, event: &str) -> Result<()> {
        self.execute("UPDATE events SET held_until = NULL WHERE id = ?1", [event])
    }

    /// Deletes the event that this call holds.
    pub fn release(&self, event: &str, execution: &str) -> Result<()> {
        let sql = "DELETE FROM events WHERE id = ?1 AND execution = ?2 AND held_until IS NOT NULL";
        self.execute(sql, (event, execution))
    }
}

/// Creates the directory and the file with permissions for their owner alone. SQLite gives its log the same
/// permissions.
fn create_private_file(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        builder.mode(0o700);
        builder.recursive(true).create(directory)?;
    }
    let mut options = std::fs::OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options.append(true).create(true).open(path).map(drop)
}

/// The row of a query, if there is one.
fn query_optional<T>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>> {
    Ok(connection.prepare_cached(sql)?.query_row(values, read).optional()?)
}

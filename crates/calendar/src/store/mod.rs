//! The file: drafts, and events with the times that they block. Several processes work on it at once; every step is one
//! transaction, and what must hold is checked inside it.

mod hold;
mod rows;
mod schema;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::busy::Span;
use crate::records::{Draft, Event, Owner, Progress};

pub use hold::{Hold, Holding};

/// Others may hold the file up this long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Drafts that lapsed this long ago, and came to nothing, are forgotten.
const KEPT: chrono::Duration = chrono::Duration::days(7);

/// Why a step was not made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no such draft")]
    NotFound,
    #[error("the draft has lapsed")]
    Expired,
    #[error("the draft has {0} slots, counted from 0")]
    NoSuchSlot(usize),
    #[error("the draft has become the event {0}")]
    Used(String),
    #[error("another call is at work on this draft")]
    InProgress,
    #[error("the time is no longer free")]
    Taken,
    #[error("the calendar's file cannot be used: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    File(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// Which events block a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// All that are in the file.
    All,
    /// Those that are being made; the others are elsewhere.
    Held,
}

/// A connection to the file, shared by all calls of a process.
#[derive(Debug, Clone)]
pub struct Store(Arc<Mutex<Connection>>);

impl Store {
    /// Opens the file, or makes it.
    pub fn open(path: &Path) -> Result<Self> {
        prepare(path).map_err(|cause| Error::File(format!("cannot make {}: {cause}", path.display())))?;
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        // An event that was answered for is on the disk.
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        schema::apply(&mut connection)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Does something with the file beside the async threads.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = self.clone();
        match tokio::task::spawn_blocking(move || work(&store)).await {
            Ok(done) => done,
            Err(error) => Err(Error::File(format!("the work on the file was lost: {error}"))),
        }
    }

    /// One transaction, which has the file to itself from its beginning.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        work(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps a draft, and forgets those that nobody can use any more.
    pub fn keep(&self, draft: &Draft) -> Result<()> {
        self.write(|transaction| {
            let old = (draft.created - KEPT).timestamp_millis();
            let forget = "DELETE FROM drafts WHERE expires < ?1 AND id NOT IN (SELECT draft FROM events)";
            transaction.execute(forget, [old])?;
            rows::insert_draft(transaction, draft)
        })
    }

    /// A draft of this owner, and what has come of it.
    pub fn look(&self, owner: &Owner, id: &str) -> Result<(Draft, Option<Progress>)> {
        self.read(|connection| Ok((rows::draft(connection, owner, id)?, rows::progress(connection, id)?)))
    }

    /// The times in a window at which an attendee is taken.
    pub fn busy(
        &self,
        address: &str,
        window: Span,
        which: Blocking,
        now: DateTime<Utc>,
    ) -> Result<Vec<Span>> {
        self.read(|connection| rows::busy(connection, address, window, which, now, ""))
    }

    /// Events that begin in a window, the earliest first.
    pub fn events(&self, window: Span) -> Result<Vec<Event>> {
        self.read(|connection| rows::events(connection, window))
    }

    /// Checks once more that the time is free, and takes it: at once if nothing else has to be done, otherwise for as
    /// long as the call may take.
    pub fn hold(&self, hold: &Hold) -> Result<Holding> {
        self.write(|transaction| hold.take(transaction))
    }

    /// The meeting that was made for an event that is held.
    pub fn note_meeting(&self, event: &str, meeting: &str, link: &str) -> Result<()> {
        self.write(|transaction| {
            let sql = "UPDATE events SET meeting = ?2, conference = ?3 WHERE id = ?1";
            transaction.execute(sql, (event, meeting, link))?;
            Ok(())
        })
    }

    /// The event exists.
    pub fn book(&self, event: &str) -> Result<()> {
        self.write(|transaction| {
            transaction.execute("UPDATE events SET held_until = NULL WHERE id = ?1", [event])?;
            Ok(())
        })
    }

    /// What was held for this call is free again.
    pub fn release(&self, event: &str, execution: &str) -> Result<()> {
        self.write(|transaction| {
            let sql = "DELETE FROM events WHERE id = ?1 AND execution = ?2 AND held_until IS NOT NULL";
            transaction.execute(sql, (event, execution))?;
            Ok(())
        })
    }
}

/// Makes the directory and the file for their owner alone; SQLite gives its log the same permissions.
fn prepare(path: &Path) -> std::io::Result<()> {
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

/// The one row of a query, if there is one.
fn one<T>(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>> {
    Ok(connection.prepare_cached(sql)?.query_row(values, read).optional()?)
}

//! The store of one server: decisions in memory, records in one SQLite file.
//!
//! - A change is decided in memory and queued. One thread takes all queued changes, applies them in one transaction,
//!   commits once (`synchronous=FULL`: a commit is an fsync) and then wakes all waiters.
//! - Each change is in the file as a whole or not at all. If a transaction fails, its changes are tried once more,
//!   each in its own transaction, so that one bad change does not fail the others. A change that fails again is
//!   reported to its waiter, or, if it has none, in the log and to the next `flush`. Lost audit entries are counted
//!   in the audit as soon as it can be written again.
//! - Queueing never blocks. A caller of a committed change waits for the disk; a caller of a relaxed one waits only
//!   while the queue is full.
//! - Records in memory are read without waiting for the disk. Evicted envelopes and the audit are read through a
//!   second connection, which a commit does not block; pages of the audit through a third, so that calls do not wait
//!   for people who look at them.
//! - One process at a time serves from a file, and holds a lock beside it. Readers (`toolwright audit`) need no lock.

mod audit_compression;
mod batch;
mod conversation_rows;
mod fault_injection;
mod journal_writer;
mod schema;
mod sqlite_audit;
mod sqlite_rows;
mod state_file;
mod write_queue;

use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::OpenFlags;

#[doc(hidden)]
pub use fault_injection::{Fault, FaultSwitch};
pub use journal_writer::SqliteJournal;
pub use sqlite_rows::ReadOnly;

use self::journal_writer::WriterThread;
use self::state_file::StateFile;
use super::{Error, Memory, Result};

/// A store in a SQLite file.
pub type Sqlite = Memory<SqliteJournal>;

pub const DEFAULT_PATH: &str = ".toolwright/state.db";

#[derive(Debug, Clone)]
pub struct Options {
    /// How many bytes of envelopes, counted as JSON text, stay in memory (where they take several times as much).
    /// Older ones are read from the file.
    pub envelope_cache_bytes: usize,
    /// What this process is, for the error of another process that finds the file in use: `toolwright chat`.
    pub owner: String,
    /// For tests.
    #[doc(hidden)]
    pub faults: FaultSwitch,
}

impl Default for Options {
    fn default() -> Self {
        Self { envelope_cache_bytes: 512 << 10, owner: String::new(), faults: FaultSwitch::default() }
    }
}

impl Sqlite {
    /// Opens a file, creates or migrates it if needed, and loads it. Blocks while it reads.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let file = StateFile::in_new_directory(path)?;
        let lock = file.lock(&options.owner)?;
        file.create()?;
        let connection = file.connect(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let version = schema::version(&connection, file.path())?;
        file.configure_writer(&connection)?;
        schema::migrate(&connection, version)?;
        let reader = || file.connect(OpenFlags::SQLITE_OPEN_READ_ONLY).map(Mutex::new).map(Arc::new);
        let journal = SqliteJournal::new(reader()?, reader()?);
        let store = Self::with_journal(journal, Some(options.envelope_cache_bytes));
        sqlite_rows::load(&connection, &store)?;
        let writer = WriterThread::new(store.journal().queue(), connection, options.faults, lock)?;
        store.journal().start(writer)?;
        Ok(store)
    }

    /// Writes everything, copies the log back into the file and releases the lock. Later changes fail. Blocks.
    pub fn close(&self) {
        self.journal().close();
    }

    /// Opens a file for reading, also while a server uses it.
    pub fn read_only(path: &Path) -> Result<ReadOnly> {
        let file = StateFile::new(path);
        let connection = file.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::check(&connection, file.path())?;
        Ok(sqlite_rows::ReadOnly(connection))
    }
}

impl From<rusqlite::Error> for Error {
    fn from(cause: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        match cause.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Corrupt(cause.to_string()),
            _ => Self::Unavailable(cause.to_string()),
        }
    }
}

/// SQLite's integers are signed; row numbers never exceed them.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

//! The store of one server: decisions in memory, records in one SQLite file.
//!
//! - A change is decided in memory and queued in the order of decisions. One thread takes all changes that wait, applies
//!   them in one transaction, commits once (`synchronous=FULL`: a commit is an fsync) and then answers all who wait.
//! - Each change is in the file as a whole or not at all. A transaction that fails is rolled back and its changes are
//!   tried once more, each alone, so that one bad change does not take others with it. What fails again is reported: to
//!   whoever waits, or, if nobody does, in the log and to the next `flush`.
//! - Queueing never blocks. Whoever needs its change on disk waits for it; whoever does not waits only when the queue
//!   is long. So the queue is bounded by the callers.
//! - Questions about what is in memory never wait for the disk. Envelopes that have left memory, and the audit, are read
//!   through a connection of their own, which a commit does not hold up.
//! - One process at a time: a lock beside the file is held for the store's life. Readers (`toolwright audit`) need none.

mod apply;
mod fault;
mod file;
mod lines;
mod load;
mod queue;
mod rows;
mod schema;
mod writer;

use std::path::Path;
use std::sync::{Arc, Mutex};

#[doc(hidden)]
pub use fault::{Fault, Faults};
pub use rows::ReadOnly;
pub use writer::Writer;

use self::file::{Access, Location};
use self::writer::Scribe;
use super::{Error, Memory, Result};

/// A store in a SQLite file.
pub type Sqlite = Memory<Writer>;

/// Where the file is, unless it is said otherwise.
pub const DEFAULT_PATH: &str = ".toolwright/state.db";

/// How a file is served.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many bytes of envelopes, counted as text, stay in memory (where they take several times as much); older ones
    /// are read from the file when somebody asks.
    pub envelopes_in_memory: usize,
    /// For tests: what is to go wrong.
    #[doc(hidden)]
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self { envelopes_in_memory: 512 << 10, faults: Faults::default() }
    }
}

impl Sqlite {
    /// Opens a file, or makes it, and takes up what it holds. Blocks while it reads.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let location = Location::prepare(path)?;
        let lock = location.lock()?;
        location.create()?;
        let connection = location.connect(Access::Serve)?;
        let version = schema::version(&connection, location.path())?;
        location.write_through(&connection)?;
        schema::migrate(&connection, version)?;
        let reader = location.connect(Access::Read)?;
        let scribe = Scribe::new(connection, options.faults)?;
        let store = Self::with(Writer::idle(Arc::new(Mutex::new(reader))), options.envelopes_in_memory);
        load::all(scribe.connection(), &store)?;
        store.serve(scribe, lock)?;
        Ok(store)
    }

    /// Opens a file to look at it, also while a server uses it.
    pub fn read_only(path: &Path) -> Result<ReadOnly> {
        let location = Location::at(path);
        let connection = location.connect(Access::Read)?;
        schema::check(&connection, location.path())?;
        Ok(ReadOnly::new(connection))
    }
}

/// What SQLite says, for the operator.
fn error(cause: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match cause.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => Error::Corrupt(cause.to_string()),
        _ => Error::Unavailable(cause.to_string()),
    }
}

impl From<rusqlite::Error> for Error {
    fn from(cause: rusqlite::Error) -> Self {
        error(&cause)
    }
}

/// SQLite's integers have a sign; numbers of rows never get that far.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

//! What tests let go wrong in the writer. Not for anybody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use rusqlite::{Connection, ErrorCode, ffi};

/// What goes wrong from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    None,
    /// Every commit fails as if the disk had.
    CommitFails,
    /// The file cannot grow.
    DiskFull,
    /// The writer stops with its next transaction open, as if the process had died.
    Dies,
}

/// A switch that a test shares with a writer.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    fault: AtomicU8,
    is_limited: AtomicBool,
}

impl Faults {
    pub fn set(&self, fault: Fault) {
        self.0.fault.store(fault as u8, Ordering::SeqCst);
    }

    pub(super) fn is(&self, fault: Fault) -> bool {
        self.0.fault.load(Ordering::SeqCst) == fault as u8
    }

    /// The first thing in a transaction.
    pub(super) fn begin(&self, connection: &Connection) -> rusqlite::Result<()> {
        let must_limit = self.is(Fault::DiskFull);
        if self.0.is_limited.swap(must_limit, Ordering::SeqCst) == must_limit {
            return Ok(());
        }
        // SQLite takes the file's size for what is below it.
        let pages = if must_limit { 1 } else { i64::from(u32::MAX - 1) };
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
    }

    /// The last thing before a commit.
    pub(super) fn commit(&self) -> rusqlite::Result<()> {
        if !self.is(Fault::CommitFails) {
            return Ok(());
        }
        let cause = ffi::Error { code: ErrorCode::SystemIoFailure, extended_code: ffi::SQLITE_IOERR_FSYNC };
        Err(rusqlite::Error::SqliteFailure(cause, None))
    }
}

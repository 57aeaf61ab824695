//! Faults that tests inject into the writer. For tests only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, ffi};

/// The operation that fails from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    None,
    /// Every commit fails like a failed fsync.
    CommitFails,
    /// Every commit waits until another fault is set, or none.
    CommitWaits,
    /// The file cannot grow.
    DiskFull,
    /// The writer stops before its next transaction, as if the process had died.
    WriterDies,
}

/// The current fault, shared by a test and a writer.
#[derive(Debug, Clone, Default)]
pub struct FaultSwitch(Arc<State>);

#[derive(Debug, Default)]
struct State {
    fault: AtomicU8,
    is_size_limited: AtomicBool,
}

impl FaultSwitch {
    pub fn set(&self, fault: Fault) {
        self.0.fault.store(fault as u8, Ordering::SeqCst);
    }

    pub(super) fn is(&self, fault: Fault) -> bool {
        self.0.fault.load(Ordering::SeqCst) == fault as u8
    }

    /// Called at the start of every transaction.
    pub(super) fn on_begin(&self, connection: &Connection) -> rusqlite::Result<()> {
        let must_limit = self.is(Fault::DiskFull);
        if self.0.is_size_limited.swap(must_limit, Ordering::SeqCst) == must_limit {
            return Ok(());
        }
        // SQLite raises a limit below the file's size to that size.
        let pages = if must_limit { 1 } else { i64::from(u32::MAX - 1) };
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
    }

    /// Called before every commit.
    pub(super) fn on_commit(&self) -> rusqlite::Result<()> {
        while self.is(Fault::CommitWaits) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if !self.is(Fault::CommitFails) {
            return Ok(());
        }
        let cause = ffi::Error { code: ErrorCode::SystemIoFailure, extended_code: ffi::SQLITE_IOERR_FSYNC };
        Err(rusqlite::Error::SqliteFailure(cause, None))
    }
}

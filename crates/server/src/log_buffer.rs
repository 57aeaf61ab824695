//! The lines of requests and calls on their way to stderr. They are written a few times a second, so that neither pays
//! for a system call of its own.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a running server writes the buffered lines.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// A larger buffer is written at once.
const MAX_BUFFER_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub struct LogBuffer {
    lines: Mutex<Vec<u8>>,
}

impl LogBuffer {
    /// Adds a whole line.
    pub fn add(&self, line: &[u8]) {
        self.add_with(|lines| lines.extend_from_slice(line));
    }

    /// Adds a whole line, which `write` appends to the others.
    pub(crate) fn add_with(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut lines = self.locked();
        write(&mut lines);
        if lines.len() >= MAX_BUFFER_BYTES {
            write_to_stderr(&mut lines);
        }
    }

    /// Adds a whole line, and writes it and all lines before it.
    pub fn write(&self, line: &[u8]) {
        let mut lines = self.locked();
        lines.extend_from_slice(line);
        write_to_stderr(&mut lines);
    }

    /// Writes all lines.
    pub fn flush(&self) {
        write_to_stderr(&mut self.locked());
    }

    fn locked(&self) -> MutexGuard<'_, Vec<u8>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_to_stderr(lines: &mut Vec<u8>) {
    if !lines.is_empty() {
        // There is nowhere to report that stderr cannot be written.
        let _ = std::io::stderr().lock().write_all(lines);
        lines.clear();
    }
}

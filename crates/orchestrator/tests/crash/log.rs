//! Two files that survive a killed process, one line per entry: the log has what callers knew, the effects have what
//! handlers did.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Id;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub generation: u64,
    pub id: Id,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// About to be sent.
    Sent,
    /// A confirmation request was returned.
    ConfirmationRequested { token: String },
    /// About to approve.
    Approving,
    /// About to reject.
    Rejecting,
    /// The rejection was acknowledged.
    Rejected,
    /// The result of the call.
    Answered(Answer),
    /// The last process found the confirmation request pending.
    Waiting,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Ok {
        data: Value,
        replayed: bool,
    },
    InDoubt,
    /// Nothing was done; it may be sent again.
    TryAgain(String),
    Unexpected(Value),
}

/// One line of the effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    pub generation: u64,
    pub id: Id,
    /// Of this run alone.
    pub nonce: u64,
}

/// A file to which lines are appended.
#[derive(Debug)]
pub struct Lines(File);

/// Marks a complete line: a process may be killed while it writes one.
const END: &str = " .";

impl Lines {
    pub fn log(directory: &Path) -> Self {
        Self::open(&directory.join("log"))
    }

    pub fn effects(directory: &Path) -> Self {
        Self::open(&directory.join("effects"))
    }

    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        Self(file)
    }

    pub fn add(&self, line: &impl Serialize) {
        let text = format!("\n{}{END}\n", serde_json::to_string(line).unwrap());
        (&self.0).write_all(text.as_bytes()).unwrap();
    }
}

/// Reads the lines appended since the last read. Not to be used while a process writes.
#[derive(Debug, Default)]
pub struct Reader {
    position: u64,
    /// Incomplete lines.
    pub torn: usize,
}

impl Reader {
    pub fn new_lines<T: for<'de> Deserialize<'de>>(&mut self, path: &Path) -> Vec<T> {
        let mut text = String::new();
        let Ok(mut file) = File::open(path) else { return Vec::new() };
        file.seek(SeekFrom::Start(self.position)).unwrap();
        self.position += file.read_to_string(&mut text).unwrap() as u64;
        let mut lines = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.strip_suffix(END) {
                Some(whole) => lines.push(serde_json::from_str(whole).unwrap()),
                None => self.torn += 1,
            }
        }
        lines
    }
}

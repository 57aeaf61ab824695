//! The instructions of a worker, in a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::Id;

/// The directory of the instructions; without it, the worker runs as an ordinary test.
pub const DIRECTORY: &str = "TOOLWRIGHT_CRASH_PLACE";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Instructions {
    pub seed: u64,
    /// The number of the process, from 1.
    pub generation: u64,
    pub location: StoreLocation,
    pub task: Task,
}

/// Where the store is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum StoreLocation {
    Sqlite(PathBuf),
    Postgres { url: String, schema: String, lease_ms: u64 },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Sends unfinished calls again, and new ones until it is killed; `next` has each caller's first number.
    Work { again: Vec<SentCall>, next: Vec<u64> },
    /// Sends unfinished calls again, then all calls, answers pending confirmation requests, and ends.
    Finish { again: Vec<SentCall>, all: Vec<SentCall> },
    /// Makes the calls of background tools up to this number, and runs tasks until it is killed, or until all have
    /// ended.
    Background { until: u64, ends: bool },
    /// Makes the same calls as the other server, and writes their results to files in this directory.
    Pause { shared: PathBuf },
    /// Waits for a line on stdin, then makes this many calls.
    Race { calls: usize },
}

/// A call that was sent before, and its last known step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentCall {
    pub id: Id,
    /// The newest known token.
    pub token: Option<String>,
    pub step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Sent,
    /// The confirmation request is known, and not answered.
    ConfirmationRequested,
    /// An approval was sent.
    Approving,
    /// A rejection was sent.
    Rejecting,
    /// It has a result.
    Done,
}

impl Instructions {
    pub fn write(&self, directory: &Path) {
        fs::write(directory.join("instructions"), serde_json::to_string(self).unwrap()).unwrap();
    }

    pub fn read(directory: &Path) -> Self {
        serde_json::from_str(&fs::read_to_string(directory.join("instructions")).unwrap()).unwrap()
    }
}

//! What a parent tells its worker, in a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::Id;

/// The directory of the orders; without it, a worker is a test like any other.
pub const PLACE: &str = "TOOLWRIGHT_CRASH_PLACE";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    pub seed: u64,
    /// The number of the process, from 1.
    pub generation: u64,
    pub place: Place,
    pub task: Task,
}

/// Where the store is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Place {
    Sqlite(PathBuf),
    Postgres { url: String, schema: String, lease_ms: u64 },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Sends again what was left, and new calls until it is killed: from these numbers, one a caller.
    Work { again: Vec<Left>, next: Vec<u64> },
    /// Sends again what was left, then everything, answers the questions that wait, and ends.
    Finish { again: Vec<Left>, all: Vec<Left> },
    /// Waits for a line, then makes this many calls.
    Twin { calls: usize },
}

/// A call that was sent before, and how far it came.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Left {
    pub id: Id,
    /// The newest token that is known.
    pub token: Option<String>,
    pub step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    Sent,
    /// The question is known, and nobody has answered.
    Asked,
    /// A yes is on its way, or has arrived.
    Approving,
    /// A no is on its way.
    Rejecting,
    /// There is an answer.
    Done,
}

impl Orders {
    pub fn write(&self, directory: &Path) {
        fs::write(directory.join("orders"), serde_json::to_string(self).unwrap()).unwrap();
    }

    pub fn read(directory: &Path) -> Self {
        serde_json::from_str(&fs::read_to_string(directory.join("orders")).unwrap()).unwrap()
    }
}

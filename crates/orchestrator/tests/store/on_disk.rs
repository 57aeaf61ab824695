//! SQLite in the suite.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use toolwright_orchestrator::store::Sqlite;
use toolwright_orchestrator::store::sqlite::{Fault, Options};

use crate::harness::{Harness, Reopen};

/// A file in a directory of its own.
pub struct OnDisk {
    store: Arc<Sqlite>,
    options: Options,
    directory: TempDir,
}

impl OnDisk {
    pub fn with(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(Sqlite::open(&path(&directory), options.clone()).unwrap());
        Self { store, options, directory }
    }

    pub fn path(&self) -> PathBuf {
        path(&self.directory)
    }
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join(".toolwright/state.db")
}

impl Harness for OnDisk {
    type Store = Sqlite;

    async fn fresh() -> Self {
        Self::with(Options::default())
    }

    fn store(&self) -> Arc<Sqlite> {
        Arc::clone(&self.store)
    }
}

impl Reopen for OnDisk {
    async fn reopen(self) -> Self {
        let Self { store, options, directory } = self;
        assert_eq!(Arc::strong_count(&store), 1, "somebody still holds the store");
        // What is still queued is lost, as in a crash.
        options.faults.set(Fault::Dies);
        drop(store);
        options.faults.set(Fault::None);
        let store = Arc::new(Sqlite::open(&path(&directory), options.clone()).unwrap());
        Self { store, options, directory }
    }
}

/// The same, with no envelope in memory: whatever is asked for is read from the file.
pub struct Forgetful(OnDisk);

impl Harness for Forgetful {
    type Store = Sqlite;

    async fn fresh() -> Self {
        Self(OnDisk::with(Options { envelopes_in_memory: 0, ..Options::default() }))
    }

    fn store(&self) -> Arc<Sqlite> {
        self.0.store()
    }
}

impl Reopen for Forgetful {
    async fn reopen(self) -> Self {
        Self(self.0.reopen().await)
    }
}

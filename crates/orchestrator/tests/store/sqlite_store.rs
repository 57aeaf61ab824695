//! The fixtures of the SQLite store.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use toolwright_orchestrator::store::Sqlite;
use toolwright_orchestrator::store::sqlite::{Fault, Options};

use crate::support::{Restart, StoreFixture};

/// A store in a temporary directory.
pub struct SqliteStore {
    store: Arc<Sqlite>,
    options: Options,
    directory: TempDir,
}

impl SqliteStore {
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

impl StoreFixture for SqliteStore {
    type Store = Sqlite;

    async fn fresh() -> Self {
        Self::with(Options::default())
    }

    fn store(&self) -> Arc<Sqlite> {
        Arc::clone(&self.store)
    }
}

impl Restart for SqliteStore {
    async fn restart(self) -> Self {
        let Self { store, options, directory } = self;
        assert_eq!(Arc::strong_count(&store), 1, "the store is still in use");
        // Queued changes are lost, as in a crash.
        options.faults.set(Fault::WriterDies);
        drop(store);
        options.faults.set(Fault::None);
        let store = Arc::new(Sqlite::open(&path(&directory), options.clone()).unwrap());
        Self { store, options, directory }
    }
}

/// The same without an envelope cache: all envelopes are read from the file.
pub struct UncachedSqliteStore(SqliteStore);

impl StoreFixture for UncachedSqliteStore {
    type Store = Sqlite;

    async fn fresh() -> Self {
        Self(SqliteStore::with(Options { envelope_cache_bytes: 0, ..Options::default() }))
    }

    fn store(&self) -> Arc<Sqlite> {
        self.0.store()
    }
}

impl Restart for UncachedSqliteStore {
    async fn restart(self) -> Self {
        Self(self.0.restart().await)
    }
}

//! A store that is only read: a server may be writing to it meanwhile.

use std::path::Path;

use anyhow::Result;
use toolwright_orchestrator::store::{AuditRow, ConfirmationRecord, Postgres, Sqlite, postgres, sqlite};

use crate::output::Failure;

/// Rows read at a time.
const PAGE_ROWS: usize = 1000;

pub enum ReadOnlyStore {
    Sqlite(sqlite::ReadOnly),
    Postgres(postgres::ReadOnly),
    /// Always empty: a store in memory ends with its process.
    Memory,
}

impl ReadOnlyStore {
    pub async fn open(url: &str) -> Result<Self> {
        let failure = |error| Failure::new(error, "name the right store with `--store URL`");
        if url == "memory:" || url == "sqlite::memory:" {
            return Ok(Self::Memory);
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let opened = Postgres::read_only(url, postgres::Options::default()).await;
            return Ok(Self::Postgres(opened.map_err(failure)?));
        }
        let Some(path) = url.strip_prefix("sqlite:").map(Path::new) else {
            return Err(crate::store::unknown_url(url).into());
        };
        if !path.exists() {
            let message = format!("there are no recorded calls yet: {} does not exist", path.display());
            return Err(Failure::new(message, "run `toolwright call` or a server first").into());
        }
        Ok(Self::Sqlite(Sqlite::read_only(path).map_err(failure)?))
    }

    /// Passes every audit row to a function, in the order they were written.
    pub async fn for_each_audit_row(&self, mut visit: impl FnMut(AuditRow) -> Result<()>) -> Result<()> {
        let mut after = 0;
        loop {
            let rows = match self {
                Self::Sqlite(file) => file.audit_rows(after, PAGE_ROWS)?,
                Self::Postgres(database) => database.audit_rows(after, PAGE_ROWS).await?,
                Self::Memory => Vec::new(),
            };
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.number;
            rows.into_iter().try_for_each(&mut visit)?;
        }
    }

    /// The confirmation requests that wait for an answer, oldest first.
    pub async fn pending_confirmations(&self) -> Result<Vec<ConfirmationRecord>> {
        Ok(match self {
            Self::Sqlite(file) => file.pending_confirmations()?,
            Self::Postgres(database) => database.pending_confirmations().await?,
            Self::Memory => Vec::new(),
        })
    }
}

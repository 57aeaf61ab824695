//! A store that is only read: a server may be writing to it meanwhile.

use anyhow::Result;
use toolwright_orchestrator::store::{
    AuditRow, ConfirmationRecord, PendingQuery, Postgres, Sqlite, ToolsetInfo, postgres, sqlite,
};

use crate::config::Config;
use crate::output::Failure;
use crate::store::StoreUrl;

/// Rows read at a time.
const PAGE_ROWS: usize = 1000;

pub enum ReadOnlyStore {
    Sqlite(sqlite::ReadOnly),
    Postgres(postgres::ReadOnly),
    /// Always empty: a store in memory ends with its process.
    Memory,
}

impl ReadOnlyStore {
    pub async fn open(config: &Config) -> Result<Self> {
        let url = config.store.as_str();
        let failure = |error| Failure::new(error, "name the right store with `--store URL`");
        let opened = match StoreUrl::parse(url)? {
            StoreUrl::Memory => Ok(Self::Memory),
            StoreUrl::Postgres => {
                Postgres::read_only(url, config.settings.store.postgres_options()).await.map(Self::Postgres)
            }
            StoreUrl::Sqlite(path) if !path.exists() => {
                let message = format!("there are no recorded calls yet: {} does not exist", path.display());
                return Err(Failure::new(message, "run `toolwright call` or a server first").into());
            }
            StoreUrl::Sqlite(path) => Sqlite::read_only(path).map(Self::Sqlite),
        };
        Ok(opened.map_err(failure)?)
    }

    /// The rows of the register of chains, if the store has one. To be read before the audit.
    pub async fn register(&self) -> Result<Option<Vec<AuditRow>>> {
        Ok(match self {
            Self::Postgres(database) => Some(database.register().await?),
            Self::Sqlite(_) | Self::Memory => None,
        })
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

    /// A page of the confirmation requests that wait for an answer, oldest first.
    pub async fn pending_confirmations(&self, query: PendingQuery<'_>) -> Result<Vec<ConfirmationRecord>> {
        Ok(match self {
            Self::Sqlite(file) => file.pending_confirmations(query)?,
            Self::Postgres(database) => database.pending_confirmations(query).await?,
            Self::Memory => Vec::new(),
        })
    }

    /// The stored toolsets, and how many active sessions each has; the one that was used last comes first.
    pub async fn toolsets(&self) -> Result<Vec<(ToolsetInfo, u64)>> {
        Ok(match self {
            Self::Sqlite(file) => file.toolsets()?,
            Self::Postgres(database) => database.toolsets().await?,
            Self::Memory => Vec::new(),
        })
    }
}

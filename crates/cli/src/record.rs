//! A store that is only looked at: a server may be writing to it meanwhile.

use std::path::Path;

use anyhow::Result;
use toolwright_orchestrator::store::{AuditRow, Confirmation, Postgres, Sqlite, postgres, sqlite};

use crate::output::Failure;

/// Rows read at a time.
const PAGE: usize = 1000;

pub enum Record {
    Sqlite(sqlite::ReadOnly),
    Postgres(postgres::ReadOnly),
    /// What is kept in memory is gone with its process.
    Memory,
}

impl Record {
    pub async fn open(url: &str) -> Result<Self> {
        let none = |message: String| {
            Failure::new(message, "calls are recorded once `toolwright call` or a server has run")
        };
        let named = |error| Failure::new(error, "name the right store with `--store URL`");
        if url == "memory:" || url == "sqlite::memory:" {
            return Ok(Self::Memory);
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let opened = Postgres::read_only(url, postgres::Options::default()).await;
            return Ok(Self::Postgres(opened.map_err(named)?));
        }
        let Some(path) = url.strip_prefix("sqlite:").map(Path::new) else {
            return Err(crate::store::unknown_form().into());
        };
        if !path.exists() {
            return Err(none(format!("there is no record yet: {} does not exist", path.display())).into());
        }
        Ok(Self::Sqlite(Sqlite::read_only(path).map_err(named)?))
    }

    /// Hands every row of the audit to a function, in the order they were written.
    pub async fn each(&self, mut look: impl FnMut(AuditRow) -> Result<()>) -> Result<()> {
        let mut after = 0;
        loop {
            let rows = match self {
                Self::Sqlite(file) => file.audit(after, PAGE)?,
                Self::Postgres(database) => database.audit(after, PAGE).await?,
                Self::Memory => Vec::new(),
            };
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.number;
            rows.into_iter().try_for_each(&mut look)?;
        }
    }

    /// The questions that wait for an answer, oldest first.
    pub async fn pending(&self) -> Result<Vec<Confirmation>> {
        Ok(match self {
            Self::Sqlite(file) => file.pending()?,
            Self::Postgres(database) => database.pending().await?,
            Self::Memory => Vec::new(),
        })
    }
}

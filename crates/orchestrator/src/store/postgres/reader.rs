//! A database that is looked at, not served: no migration, no lease, nothing written.

use std::fmt;
use std::sync::Arc;

use toolwright_postgres::{Address, Connector, Parameters, Pool, check};

use super::backend::{AUDIT, HORIZON, PENDING};
use super::rows::{self, get};
use super::{MIGRATIONS, Options};
use crate::store::Result;
use crate::store::records::{AuditRow, Confirmation};

const IS_THERE: &str = "SELECT to_regclass('migration') IS NOT NULL AS is_there";
const VERSION: &str = "SELECT coalesce(max(version), 0) AS version FROM migration";
const NEVER_WRITE: &str = "SELECT set_config('default_transaction_read_only', 'on', false)";

/// A store that is only read.
pub struct ReadOnly(Pool);

impl fmt::Debug for ReadOnly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReadOnly").finish_non_exhaustive()
    }
}

impl ReadOnly {
    pub(super) async fn connect(url: &str, options: Options) -> Result<Self> {
        let schema = options.schema.clone();
        let connector = Connector::new(Address::parse(url)?, options.settings());
        let reader = Self(Pool::new(Arc::new(connector), 1));
        let rows = reader.query(IS_THERE, &[]).await?;
        let is_there = rows.first().map_or(Ok(false), |row| get(row, "is_there"))?;
        let rows = if is_there { reader.query(VERSION, &[]).await? } else { Vec::new() };
        check(rows.first().map_or(Ok(0), |row| get(row, "version"))?, &schema, MIGRATIONS)?;
        Ok(reader)
    }

    /// Up to `limit` rows of all chains, in the order they were written, after the row with this number.
    pub async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        let (after, limit) =
            (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        let horizon = self.query(HORIZON, &[]).await?;
        let last: i64 = horizon.first().map_or(Ok(0), |row| get(row, "last"))?;
        self.query(AUDIT, &[&after, &last, &limit]).await?.iter().map(rows::audit).collect()
    }

    /// The questions that wait for an answer, oldest first.
    pub async fn pending(&self) -> Result<Vec<Confirmation>> {
        self.query(PENDING, &[]).await?.iter().map(rows::confirmation).collect()
    }

    async fn query(&self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<tokio_postgres::Row>> {
        let mut connection = self.0.borrow().await?;
        connection.query(NEVER_WRITE, &[]).await?;
        Ok(connection.query(sql, parameters).await?)
    }
}

//! A store that is open for reading only: no migration, no lease, nothing written.

use std::fmt;

use toolwright_postgres::{Address, Parameters, Pool, check};

use super::postgres_rows::{self as rows, get};
use super::{MIGRATIONS, Options, statements};
use crate::store::Result;
use crate::store::records::{AuditRow, ConfirmationRecord};

const HAS_SCHEMA: &str = "SELECT to_regclass('migration') IS NOT NULL AS has_schema";
const SCHEMA_VERSION: &str = "SELECT coalesce(max(version), 0) AS version FROM migration";
const SET_READ_ONLY: &str = "SELECT set_config('default_transaction_read_only', 'on', false)";

pub struct ReadOnly(Pool);

impl fmt::Debug for ReadOnly {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ReadOnly").finish_non_exhaustive()
    }
}

impl ReadOnly {
    pub(super) async fn connect(url: &str, options: &Options) -> Result<Self> {
        let reader = Self(Pool::new(&Address::parse(url)?, &options.settings(), 1)?);
        let rows = reader.query(HAS_SCHEMA, &[]).await?;
        let has_schema = rows.first().map_or(Ok(false), |row| get(row, "has_schema"))?;
        let rows = if has_schema { reader.query(SCHEMA_VERSION, &[]).await? } else { Vec::new() };
        check(rows.first().map_or(Ok(0), |row| get(row, "version"))?, &options.schema, MIGRATIONS)?;
        Ok(reader)
    }

    /// Up to `limit` rows of all chains in the order they were written, after the row with this number.
    pub async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        let (after, limit) =
            (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        let horizon = self.query(statements::AUDIT_HORIZON, &[]).await?;
        let last: i64 = horizon.first().map_or(Ok(0), |row| get(row, "last"))?;
        self.query(statements::AUDIT_ROWS, &[&after, &last, &limit]).await?.iter().map(rows::audit).collect()
    }

    /// The pending confirmations, oldest first.
    pub async fn pending_confirmations(&self) -> Result<Vec<ConfirmationRecord>> {
        let rows = self.query(statements::PENDING_CONFIRMATIONS, &[]).await?;
        rows.iter().map(rows::confirmation).collect()
    }

    async fn query(&self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<tokio_postgres::Row>> {
        let mut connection = self.0.get().await?;
        connection.query(SET_READ_ONLY, &[]).await?;
        Ok(connection.query(sql, parameters).await?)
    }
}

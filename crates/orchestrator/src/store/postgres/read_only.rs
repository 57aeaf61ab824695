//! A store that is open for reading only: no migration, no lease, nothing written.

use toolwright_postgres::{Address, Connection, Pool, check};

use super::postgres_backend::{audit_rows, pending_rows};
use super::postgres_rows::{self as rows, get, get_only};
use super::{MIGRATIONS, Options, statements};
use crate::store::Result;
use crate::store::records::{AuditRow, ConfirmationRecord, PendingQuery, ToolsetInfo};

const HAS_SCHEMA: &str = "SELECT to_regclass('migration') IS NOT NULL AS has_schema";
const SCHEMA_VERSION: &str = "SELECT coalesce(max(version), 0) AS version FROM migration";
const SET_READ_ONLY: &str = "SELECT set_config('default_transaction_read_only', 'on', false)";

#[derive(Debug)]
pub struct ReadOnly(Pool);

impl ReadOnly {
    pub(super) async fn connect(url: &str, options: &Options) -> Result<Self> {
        let reader = Self(Pool::new(&Address::parse(url)?, &options.settings(), 1)?);
        let mut connection = reader.connection().await?;
        let has_schema = get_only(&connection.query(HAS_SCHEMA, &[]).await?, "has_schema")?;
        let rows = if has_schema { connection.query(SCHEMA_VERSION, &[]).await? } else { Vec::new() };
        check(rows.first().map_or(Ok(0), |row| get(row, "version"))?, &options.schema, MIGRATIONS)?;
        drop(connection);
        Ok(reader)
    }

    /// Up to `limit` rows of all chains in the order they were written, after the row with this number.
    pub async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        audit_rows(&mut self.connection().await?, after, limit).await
    }

    /// The rows of the register of chains. It must be read before the audit, which may get new chains meanwhile.
    pub async fn register(&self) -> Result<Vec<AuditRow>> {
        let rows = self.connection().await?.query(statements::REGISTER, &[]).await?;
        rows.iter().map(rows::registration).collect()
    }

    /// A page of the pending confirmations, oldest first.
    pub async fn pending_confirmations(&self, query: PendingQuery<'_>) -> Result<Vec<ConfirmationRecord>> {
        let rows = pending_rows(&mut self.connection().await?, query).await?;
        rows.iter().map(rows::confirmation).collect()
    }

    /// All stored toolsets, and how many active sessions each has; the one that was used last comes first.
    pub async fn toolsets(&self) -> Result<Vec<(ToolsetInfo, u64)>> {
        let rows = self.connection().await?.query(statements::TOOLSETS, &[]).await?;
        rows.iter().map(rows::toolset_use).collect()
    }

    async fn connection(&self) -> Result<Connection> {
        let mut connection = self.0.get().await?;
        connection.query(SET_READ_ONLY, &[]).await?;
        Ok(connection)
    }
}

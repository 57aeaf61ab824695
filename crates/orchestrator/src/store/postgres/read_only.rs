//! A store that is open for reading only: no migration, no lease, nothing written.

use toolwright_postgres::{Address, Connection, Pool, check};

use super::postgres_backend::audit_rows;
use super::postgres_rows::{self as rows, get, get_only};
use super::{MIGRATIONS, Options, statements};
use crate::store::Result;
use crate::store::records::{AuditRow, ConfirmationRecord};

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

    /// The pending confirmations, oldest first.
    pub async fn pending_confirmations(&self) -> Result<Vec<ConfirmationRecord>> {
        let mut connection = self.connection().await?;
        let rows = connection.query(statements::PENDING_CONFIRMATIONS, &[&None::<String>]).await?;
        rows.iter().map(rows::confirmation).collect()
    }

    async fn connection(&self) -> Result<Connection> {
        let mut connection = self.0.get().await?;
        connection.query(SET_READ_ONLY, &[]).await?;
        Ok(connection)
    }
}

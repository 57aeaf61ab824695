//! Migrations of a schema. A migration is never changed once it was released, and does not remove what the version
//! before it uses: while servers are replaced one by one, both versions run.

use deadpool_postgres::Transaction;

use crate::{Connection, Error};

const CREATE_SCHEMA: &str = "DO $$ BEGIN
    IF to_regnamespace(quote_ident(current_setting('toolwright.schema'))) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', current_setting('toolwright.schema'));
    END IF;
    IF to_regclass('migration') IS NULL THEN
        CREATE TABLE migration (
            version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
    END IF;
END $$";

/// Migrates the schema to the newest version: migration n makes version n from version n - 1, from 1. Of several
/// processes one does it, the others wait.
pub async fn migrate(connection: &mut Connection, schema: &str, migrations: &[&str]) -> Result<(), Error> {
    let transaction = connection.client()?.transaction().await?;
    let version = lock_and_read_version(&transaction, schema).await?;
    let applied = usize::try_from(version).unwrap_or(usize::MAX);
    if applied > migrations.len() {
        return Err(newer(version, schema, migrations));
    }
    for (version, migration) in (1_i32..).zip(migrations).skip(applied) {
        transaction.batch_execute(migration).await?;
        transaction.execute("INSERT INTO migration (version) VALUES ($1)", &[&version]).await?;
    }
    Ok(transaction.commit().await?)
}

/// Checks that a schema of this version can be read without a migration.
pub fn check(version: i32, schema: &str, migrations: &[&str]) -> Result<(), Error> {
    match usize::try_from(version).unwrap_or(usize::MAX) {
        0 => Err(Error::NotSent(format!("nothing is stored yet: the database has no schema {schema}"))),
        applied if applied < migrations.len() => Err(Error::NotSent(format!(
            "the schema {schema} was written by an older Toolwright: start the server once, which migrates it"
        ))),
        applied if applied > migrations.len() => Err(newer(version, schema, migrations)),
        _ => Ok(()),
    }
}

fn newer(version: i32, schema: &str, migrations: &[&str]) -> Error {
    Error::NotSent(format!(
        "the schema {schema} has version {version}, of a newer Toolwright; this one reads up to version {}: update \
         Toolwright, or set another schema",
        migrations.len()
    ))
}

/// Takes a lock that ends with the transaction.
async fn lock_and_read_version(
    transaction: &Transaction<'_>,
    schema: &str,
) -> Result<i32, tokio_postgres::Error> {
    // A migration, and waiting for one, may take longer than any other statement.
    let settings =
        "SELECT set_config('statement_timeout', '0', true), set_config('toolwright.schema', $1, true)";
    transaction.query(settings, &[&schema]).await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('toolwright migration ' || $1, 0))";
    transaction.query(lock, &[&schema]).await?;
    transaction.batch_execute(CREATE_SCHEMA).await?;
    let version = transaction.query_one("SELECT coalesce(max(version), 0) FROM migration", &[]).await?;
    version.try_get(0)
}

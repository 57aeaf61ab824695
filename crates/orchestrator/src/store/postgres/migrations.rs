//! The schema and its versions. A migration is never changed once it was released, and leaves what the version before it
//! uses: while replicas are replaced one by one, both are at work.

use tokio_postgres::Transaction;

use super::failure::Failure;
use super::pool::Connection;
use crate::store::{Error, Result};

/// What makes version n of version n - 1, from 1.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql")];

const MAKE_SCHEMA: &str = "DO $$ BEGIN
    IF to_regnamespace(quote_ident(current_setting('toolwright.schema'))) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', current_setting('toolwright.schema'));
    END IF;
    IF to_regclass('migration') IS NULL THEN
        CREATE TABLE migration (
            version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
    END IF;
END $$";

/// Brings the schema to the newest version. Of several processes one does it, the others wait.
pub(super) async fn run(connection: &mut Connection, schema: &str) -> Result<()> {
    let transaction = connection.client.transaction().await.map_err(Failure::from)?;
    let version = prepare(&transaction, schema).await.map_err(Failure::from)?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        return Err(newer(version, schema));
    }
    apply(transaction, done).await.map_err(|error| Failure::from(error).into())
}

/// Makes sure that a schema of this version can be read as it is.
pub(super) fn check(version: i32, schema: &str) -> Result<()> {
    match usize::try_from(version).unwrap_or(usize::MAX) {
        0 => Err(Error::Unavailable(format!("there is no record yet: the database has no schema {schema}"))),
        done if done < MIGRATIONS.len() => Err(Error::Unavailable(format!(
            "the schema {schema} is of an older Toolwright: start the server once, which brings it up to date"
        ))),
        done if done > MIGRATIONS.len() => Err(newer(version, schema)),
        _ => Ok(()),
    }
}

fn newer(version: i32, schema: &str) -> Error {
    Error::Unavailable(format!(
        "the schema {schema} is of version {version}, made by a newer Toolwright; this one knows version {}: \
         update it, or give it a schema of its own",
        MIGRATIONS.len()
    ))
}

/// Takes the lock, which ends with the transaction, and says which version is there.
async fn prepare(
    transaction: &Transaction<'_>,
    schema: &str,
) -> std::result::Result<i32, tokio_postgres::Error> {
    // A migration may take longer than any other statement, and so may waiting for it.
    let settings =
        "SELECT set_config('statement_timeout', '0', true), set_config('toolwright.schema', $1, true)";
    transaction.query(settings, &[&schema]).await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('toolwright migration ' || $1, 0))";
    transaction.query(lock, &[&schema]).await?;
    transaction.batch_execute(MAKE_SCHEMA).await?;
    let version = transaction.query_one("SELECT coalesce(max(version), 0) FROM migration", &[]).await?;
    version.try_get(0)
}

async fn apply(transaction: Transaction<'_>, done: usize) -> std::result::Result<(), tokio_postgres::Error> {
    for (version, migration) in (1_i32..).zip(MIGRATIONS).skip(done) {
        transaction.batch_execute(migration).await?;
        transaction.execute("INSERT INTO migration (version) VALUES ($1)", &[&version]).await?;
    }
    transaction.commit().await
}

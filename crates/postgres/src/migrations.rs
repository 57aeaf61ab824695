//! The schema and its versions. A migration is never changed once it was released, and leaves what the version before it
//! uses: while replicas are replaced one by one, both are at work.

use tokio_postgres::Transaction;

use crate::{Connection, Failure};

const MAKE_SCHEMA: &str = "DO $$ BEGIN
    IF to_regnamespace(quote_ident(current_setting('toolwright.schema'))) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', current_setting('toolwright.schema'));
    END IF;
    IF to_regclass('migration') IS NULL THEN
        CREATE TABLE migration (
            version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
    END IF;
END $$";

/// Brings the schema to the newest version: `migrations` make version n of version n - 1, from 1. Of several processes
/// one does it, the others wait.
pub async fn migrate(connection: &mut Connection, schema: &str, migrations: &[&str]) -> Result<(), Failure> {
    let transaction = connection.client.transaction().await.map_err(Failure::from)?;
    let version = prepare(&transaction, schema).await.map_err(Failure::from)?;
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > migrations.len() {
        return Err(newer(version, schema, migrations));
    }
    apply(transaction, migrations, done).await.map_err(Failure::from)
}

/// Makes sure that a schema of this version can be read as it is.
pub fn check(version: i32, schema: &str, migrations: &[&str]) -> Result<(), Failure> {
    match usize::try_from(version).unwrap_or(usize::MAX) {
        0 => Err(Failure::Unsent(format!("there is no record yet: the database has no schema {schema}"))),
        done if done < migrations.len() => Err(Failure::Unsent(format!(
            "the schema {schema} is of an older Toolwright: start the server once, which brings it up to date"
        ))),
        done if done > migrations.len() => Err(newer(version, schema, migrations)),
        _ => Ok(()),
    }
}

fn newer(version: i32, schema: &str, migrations: &[&str]) -> Failure {
    Failure::Unsent(format!(
        "the schema {schema} is of version {version}, made by a newer Toolwright; this one knows version {}: \
         update it, or give it a schema of its own",
        migrations.len()
    ))
}

/// Takes the lock, which ends with the transaction, and says which version is there.
async fn prepare(transaction: &Transaction<'_>, schema: &str) -> Result<i32, tokio_postgres::Error> {
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

async fn apply(
    transaction: Transaction<'_>,
    migrations: &[&str],
    done: usize,
) -> Result<(), tokio_postgres::Error> {
    for (version, migration) in (1_i32..).zip(migrations).skip(done) {
        transaction.batch_execute(migration).await?;
        transaction.execute("INSERT INTO migration (version) VALUES ($1)", &[&version]).await?;
    }
    transaction.commit().await
}

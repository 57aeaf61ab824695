//! What the file looks like, and how an older one becomes one of today.
//!
//! Everything that a call writes goes to the end of a table, so that a commit touches few pages: `calls` is in the order of
//! numbers that memory gives out, and there is no index on ids, which memory knows.

use std::path::Path;

use rusqlite::Connection;

use crate::store::{Error, Result};

/// "Twrt": tells our files from other SQLite files.
const APPLICATION: i32 = 0x5477_7274;

/// One script a version; a file's `user_version` says how many it has seen.
const STEPS: &[&str] = &["
    CREATE TABLE sessions (id TEXT PRIMARY KEY NOT NULL, record TEXT NOT NULL);
    CREATE TABLE claims (
        number INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        execution TEXT NOT NULL,
        digest BLOB NOT NULL,
        idempotent INTEGER NOT NULL,
        turn INTEGER,
        at INTEGER NOT NULL
    );
    CREATE TABLE envelopes (number INTEGER PRIMARY KEY, envelope TEXT NOT NULL);
    CREATE TABLE confirmations (id TEXT PRIMARY KEY NOT NULL, record TEXT NOT NULL);
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY,
        chain TEXT NOT NULL,
        position INTEGER NOT NULL,
        previous BLOB NOT NULL,
        hash BLOB NOT NULL,
        entry TEXT NOT NULL
    );
", "
    -- One row a call, and several lines of the audit in one row, each on a line of `entry`: number, position and previous
    -- are those of the first, the hash is that of the last.
    CREATE TABLE calls (
        number INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        execution TEXT NOT NULL,
        digest BLOB NOT NULL,
        idempotent INTEGER NOT NULL,
        turn INTEGER,
        at INTEGER NOT NULL,
        envelope TEXT
    );
    INSERT INTO calls SELECT claims.*, envelope FROM claims LEFT JOIN envelopes USING (number) ORDER BY number;
    DROP TABLE claims;
    DROP TABLE envelopes;
", "
    -- Many lines of the audit are packed: `entry` is a BLOB then.
"];

/// Brings a file of this version up to date, in one step.
pub fn migrate(connection: &Connection, version: usize) -> Result<()> {
    if version == STEPS.len() {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for step in &STEPS[version..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", STEPS.len() as u32)?;
    Ok(transaction.commit()?)
}

/// Makes sure that a file can be read as it is.
pub fn check(connection: &Connection, path: &Path) -> Result<()> {
    match version(connection, path)? {
        version if version == STEPS.len() => Ok(()),
        _ => Err(Error::Unavailable(format!(
            "{} is of an older Toolwright: start the server once, which brings it up to date",
            path.display()
        ))),
    }
}

/// Which version a file is; files of others, and of the future, are refused.
pub fn version(connection: &Connection, path: &Path) -> Result<usize> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (version, application) = (number("user_version")?, number("application_id")?);
    let path = path.display();
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && (tables > 0 || version != 0) {
        let why = format!("{path} is a database of another program: name another file; nothing was changed");
        return Err(Error::Corrupt(why));
    }
    match usize::try_from(version) {
        Ok(version) if version <= STEPS.len() => Ok(version),
        _ => Err(Error::Unavailable(format!(
            "{path} is of a newer Toolwright (form {version}, this one knows {}): update Toolwright, or name another \
             file; nothing was changed",
            STEPS.len()
        ))),
    }
}

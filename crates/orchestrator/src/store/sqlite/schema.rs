//! The tables of the file, and migrations from older versions.
//!
//! Everything that a call writes goes to the end of a table, so that a commit touches few pages: `calls` is ordered by
//! numbers that memory assigns, and has no index on ids, which are indexed in memory.

use std::path::Path;

use rusqlite::Connection;

use super::batch::write_block;
use super::sqlite_rows::for_each_record;
use crate::store::records::{BlockRecord, SessionRecord};
use crate::store::{Error, Result};

/// "Twrt": distinguishes our files from other SQLite files.
const APPLICATION_ID: i32 = 0x5477_7274;

/// Migration n makes version n + 1; a file's `user_version` is how many were applied.
const MIGRATIONS: &[&str] = &["
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
    -- A call is one row. A row of the audit has several entries, each on a line of `entry`: number, position and
    -- previous are those of the first, the hash is that of the last.
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
    -- Many audit entries are compressed: `entry` is a BLOB then.
", "
    -- Blocks have their own table; `migrate_blocks` fills it.
    CREATE TABLE blocks (
        org TEXT NOT NULL,
        principal TEXT NOT NULL,
        client_id TEXT NOT NULL,
        until INTEGER NOT NULL,
        PRIMARY KEY (org, principal, client_id)
    ) WITHOUT ROWID;
    -- What a session has spent is in its record. Until now it was the larger of the record's `retrievals` and the
    -- number of calls that belong to its turn.
    UPDATE sessions SET record = json_set(record, '$.retrievals', counted.calls)
        FROM (
            SELECT session, turn, count(*) AS calls FROM calls WHERE turn IS NOT NULL GROUP BY session, turn
        ) AS counted
        WHERE counted.session = sessions.id AND counted.turn = record ->> '$.turn'
            AND counted.calls > record ->> '$.retrievals';
    ALTER TABLE calls DROP COLUMN turn;
", "
    -- Pending confirmations, for readers of the file: a server has all of them in memory.
    CREATE INDEX confirmations_pending ON confirmations (record ->> '$.created_at', id)
        WHERE record ->> '$.answer' = 'pending';
", "
    -- Whole toolsets, for sessions that go on after the files have changed.
    CREATE TABLE toolsets (
        id TEXT PRIMARY KEY NOT NULL,
        created_at INTEGER NOT NULL,
        used_at INTEGER NOT NULL,
        tools INTEGER NOT NULL,
        content BLOB NOT NULL
    );
", super::conversation_rows::CREATE_TABLE, "
    -- The arguments of a call that has ended, without those that are `writeOnly`.
    ALTER TABLE calls ADD COLUMN args TEXT;
    -- The index of the audit; see `audit_segment.rs`. Entries without a segment are added when the file is opened.
    CREATE TABLE audit_segments (
        last INTEGER PRIMARY KEY,
        first INTEGER NOT NULL,
        earliest INTEGER NOT NULL,
        latest INTEGER NOT NULL,
        filter BLOB NOT NULL
    );
", "
    -- What each process has counted in each minute of the last day.
    CREATE TABLE minutes (
        at INTEGER NOT NULL,
        process TEXT NOT NULL,
        content TEXT NOT NULL,
        PRIMARY KEY (at, process)
    ) WITHOUT ROWID;
", "
    -- Calls that run in the background.
    CREATE TABLE tasks (id TEXT PRIMARY KEY NOT NULL, record TEXT NOT NULL);
", "
    -- Entries are found by org, client and approver too: all are indexed again when the file is opened.
    DELETE FROM audit_segments;
"];

/// The newest version.
pub const VERSION: usize = MIGRATIONS.len();

/// The version before blocks had their own table.
const VERSION_WITHOUT_BLOCKS: usize = 3;

/// Migrates a file of this version to the newest one, in one transaction.
pub fn migrate(connection: &Connection, version: usize) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    for migration in &MIGRATIONS[version..] {
        transaction.execute_batch(migration)?;
    }
    if version <= VERSION_WITHOUT_BLOCKS {
        migrate_blocks(&transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    write_version(&transaction)?;
    Ok(transaction.commit()?)
}

/// Writes the newest version into the header of the file, also if it is there already.
pub fn write_version(connection: &Connection) -> Result<()> {
    Ok(connection.pragma_update(None, "user_version", VERSION as u32)?)
}

/// Moves the blocks that were stored as sessions.
fn migrate_blocks(connection: &Connection) -> Result<()> {
    let mut blocks = Vec::new();
    for_each_record(connection, "sessions", |session: SessionRecord| {
        blocks.extend(BlockRecord::from_session(&session).map(|block| (session.id, block)));
    })?;
    for (session, block) in blocks {
        write_block(connection, &block)?;
        connection.execute("DELETE FROM sessions WHERE id = ?1", [session])?;
    }
    Ok(())
}

/// Checks that a file can be read without a migration.
pub fn check(connection: &Connection, path: &Path) -> Result<()> {
    match version(connection, path)? {
        version if version == VERSION => Ok(()),
        _ => Err(Error::Unavailable(format!(
            "{} was written by an older Toolwright: start the server once, which migrates it",
            path.display()
        ))),
    }
}

/// The version of a file. Files of other programs and of newer versions are refused.
pub fn version(connection: &Connection, path: &Path) -> Result<usize> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (version, application) = (number("user_version")?, number("application_id")?);
    let path = path.display();
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (tables > 0 || version != 0) {
        let why = format!("{path} is a database of another program: name another file; nothing was changed");
        return Err(Error::Corrupt(why));
    }
    match usize::try_from(version) {
        Ok(version) if version <= VERSION => Ok(version),
        _ => Err(Error::Unavailable(format!(
            "{path} was written by a newer Toolwright (version {version} of the file; this one reads up to {}): update \
             Toolwright, or name another file; nothing was changed",
            VERSION
        ))),
    }
}

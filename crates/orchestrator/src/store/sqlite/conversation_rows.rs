//! The rows of conversation logs.

use rusqlite::Connection;

use super::signed;
use crate::store::Result;
use crate::store::conversation::LogEntry;

/// The table of the logs, ordered by session and position.
pub const CREATE_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS conversation (
        session TEXT NOT NULL,
        position INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, position)
    ) WITHOUT ROWID;
";

pub fn insert(connection: &Connection, session: &str, entries: &[LogEntry]) -> Result<()> {
    let sql = "INSERT INTO conversation (session, position, body) VALUES (?1, ?2, ?3)";
    let mut statement = connection.prepare_cached(sql)?;
    for LogEntry { position, body } in entries {
        statement.execute((session, signed(*position), &**body))?;
    }
    Ok(())
}

pub fn delete(connection: &Connection, session: &str) -> Result<()> {
    connection.prepare_cached("DELETE FROM conversation WHERE session = ?1")?.execute([session])?;
    Ok(())
}

/// Up to `limit` entries after this position.
pub fn read(connection: &Connection, session: &str, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
    let sql = "SELECT position, body FROM conversation WHERE session = ?1 AND position > ?2
               ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((session, signed(after), signed(limit as u64)))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let position = row.get::<_, i64>(0)?.unsigned_abs();
        entries.push(LogEntry { position, body: row.get::<_, String>(1)?.into() });
    }
    Ok(entries)
}

/// The position of the last entry.
pub fn last_position(connection: &Connection, session: &str) -> Result<u64> {
    let sql = "SELECT coalesce(max(position), 0) FROM conversation WHERE session = ?1";
    let end: i64 = connection.prepare_cached(sql)?.query_row([session], |row| row.get(0))?;
    Ok(end.unsigned_abs())
}

/// The last entries of up to `limit` logs after this session. Skips from session to session in the index, so that the
/// other entries are not read.
pub fn last_entries(connection: &Connection, after: &str, limit: usize) -> Result<Vec<(String, LogEntry)>> {
    let sql = "WITH RECURSIVE log (session) AS (
                   SELECT min(session) FROM conversation WHERE session > ?1
                   UNION ALL
                   SELECT (SELECT min(session) FROM conversation WHERE session > log.session)
                   FROM log WHERE log.session IS NOT NULL
                   LIMIT ?2
               )
               SELECT c.session, c.position, c.body FROM log JOIN conversation c ON c.session = log.session
                   AND c.position = (SELECT max(position) FROM conversation WHERE session = log.session)";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((after, signed(limit as u64)))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let position = row.get::<_, i64>(1)?.unsigned_abs();
        entries.push((row.get(0)?, LogEntry { position, body: row.get::<_, String>(2)?.into() }));
    }
    Ok(entries)
}

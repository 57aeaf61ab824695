//! The conversation logs in PostgreSQL. The writer of a log belongs to an instance: when that is gone, so is the
//! writer.

use toolwright_postgres::Parameters;

use super::Postgres;
use super::postgres_rows::{get, get_only, id_of_key, key, synchronous_commit};
use crate::store::conversation::{ConversationLog, LogEntry, LogOpening};
use crate::store::records::Durability;
use crate::store::{Error, Result};

const OPEN: &str =
    "INSERT INTO conversation AS c (session, writer, owner) SELECT id, $2, $3 FROM session WHERE id = $1
    ON CONFLICT (session) DO UPDATE SET writer = excluded.writer, owner = excluded.owner
        WHERE c.writer IS NULL OR c.writer = excluded.writer OR NOT is_alive(c.owner)
    RETURNING last";
const TAKE: &str =
    "INSERT INTO conversation (session, writer, owner) SELECT id, $2, $3 FROM session WHERE id = $1
    ON CONFLICT (session) DO UPDATE SET writer = excluded.writer, owner = excluded.owner RETURNING last";
const APPEND: &str = "WITH mine AS (
        UPDATE conversation SET last = $3 FROM set_config('synchronous_commit', $6, true)
        WHERE session = $1 AND writer = $2 RETURNING session
    ), added AS (
        INSERT INTO conversation_entry (session, position, body)
        SELECT mine.session, entry.position, entry.body
        FROM mine, unnest($4::bigint[], $5::text[]) AS entry (position, body)
    ) SELECT EXISTS (SELECT FROM mine) AS is_mine";
const CLOSE: &str = "UPDATE conversation SET writer = NULL, owner = NULL
    FROM set_config('synchronous_commit', 'off', true) WHERE session = $1 AND writer = $2";
const ENTRIES: &str = "SELECT position, body FROM conversation_entry
    WHERE session = $1 AND position > $2 ORDER BY position LIMIT $3";
const LAST_ENTRIES: &str = "SELECT c.session, e.position, e.body
    FROM conversation c JOIN conversation_entry e ON e.session = c.session AND e.position = c.last
    WHERE c.session > $1 ORDER BY c.session LIMIT $2";
const WRITER: &str =
    "SELECT writer FROM conversation WHERE session = $1 AND writer IS NOT NULL AND is_alive(owner)";

impl ConversationLog for Postgres {
    async fn open_log(&self, session: &str, writer: &str) -> Result<LogOpening> {
        loop {
            let parameters: Parameters<'_> = &[&key(session), &key(writer), &self.lease.epoch().owner];
            let rows = self.pool.query(OPEN, parameters).await?;
            if let Some(row) = rows.first() {
                return Ok(LogOpening::Opened { end: get::<i64>(row, "last")?.cast_unsigned() });
            }
            if crate::store::Backend::session(self, session).await?.is_none() {
                return Err(Error::NoSession(session.to_owned()));
            }
            if let Some(writer) = self.log_writer(session).await? {
                return Ok(LogOpening::Busy { writer });
            }
            // It was closed meanwhile.
        }
    }

    async fn take_log(&self, session: &str, writer: &str) -> Result<u64> {
        let rows = self.pool.query(TAKE, &[&key(session), &key(writer), &self.lease.epoch().owner]).await?;
        let row = rows.first().ok_or_else(|| Error::NoSession(session.to_owned()))?;
        get::<i64>(row, "last").map(i64::cast_unsigned)
    }

    async fn append_log(
        &self,
        session: &str,
        writer: &str,
        entries: Vec<LogEntry>,
        durability: Durability,
    ) -> Result<bool> {
        let Some(last) = entries.last().map(|entry| entry.position.cast_signed()) else { return Ok(true) };
        let positions: Vec<i64> = entries.iter().map(|entry| entry.position.cast_signed()).collect();
        let bodies: Vec<&str> = entries.iter().map(|entry| &*entry.body).collect();
        let commit = synchronous_commit(durability);
        let parameters: Parameters<'_> = &[&key(session), &key(writer), &last, &positions, &bodies, &commit];
        get_only(&self.pool.query(APPEND, parameters).await?, "is_mine")
    }

    async fn close_log(&self, session: &str, writer: &str) -> Result<()> {
        Ok(self.pool.query(CLOSE, &[&key(session), &key(writer)]).await.map(drop)?)
    }

    async fn log_entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        let (after, limit) =
            (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = self.pool.query(ENTRIES, &[&key(session), &after, &limit]).await?;
        let entry = |row| {
            let position = get::<i64>(row, "position")?.cast_unsigned();
            Ok(LogEntry { position, body: get::<String>(row, "body")?.into() })
        };
        rows.iter().map(entry).collect()
    }

    async fn last_log_entries(&self, after: &str, limit: usize) -> Result<Vec<(String, LogEntry)>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.pool.query(LAST_ENTRIES, &[&key(after), &limit]).await?;
        let entry = |row| {
            let position = get::<i64>(row, "position")?.cast_unsigned();
            let body = get::<String>(row, "body")?.into();
            Ok((id_of_key(&get::<String>(row, "session")?), LogEntry { position, body }))
        };
        rows.iter().map(entry).collect()
    }

    async fn log_writer(&self, session: &str) -> Result<Option<String>> {
        let rows = self.pool.query(WRITER, &[&key(session)]).await?;
        rows.first().map(|row| get(row, "writer")).transpose()
    }
}

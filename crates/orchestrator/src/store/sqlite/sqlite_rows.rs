//! Reads rows of the file: everything that memory holds when it is opened, and later evicted executions and the audit.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, Rows};
use serde::de::DeserializeOwned;
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::{Sqlite, audit_compression, signed};
use crate::store::chain::Chain;
use crate::store::memory::{Execution, ExecutionStage};
use crate::store::records::{
    AuditRow, BlockRecord, ConfirmationRecord, ExecutionRecord, ExecutionStatus, MinuteRecord, PendingQuery,
    PendingScope, ToolsetInfo,
};
use crate::store::{Error, Result};

/// A file that is open for reading only.
#[derive(Debug)]
pub struct ReadOnly(pub(super) Connection);

impl ReadOnly {
    /// Up to `limit` rows of all chains in the order they were written, after the row with this number.
    pub fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        audit_rows(&self.0, after, limit)
    }

    /// A page of the pending confirmations, oldest first.
    pub fn pending_confirmations(&self, query: PendingQuery<'_>) -> Result<Vec<ConfirmationRecord>> {
        let (column, value) = match query.scope {
            PendingScope::All => ("'all'", "all"),
            PendingScope::Session(id) => ("record ->> '$.session'", id),
            PendingScope::Principal(key) => ("record ->> '$.principal'", key),
        };
        let sql = format!(
            "SELECT id, record FROM confirmations
             WHERE record ->> '$.answer' = 'pending' AND (record ->> '$.created_at', id) > (?1, ?2) AND {column} = ?3
             ORDER BY record ->> '$.created_at', id LIMIT ?4"
        );
        let (at, id) = query.after.unwrap_or((i64::MIN, ""));
        let mut pending = Vec::new();
        let mut statement = self.0.prepare_cached(&sql)?;
        let rows = statement.query((at, id, value, signed(query.limit as u64)))?;
        visit_records(rows, "confirmations", |record| pending.push(record))?;
        Ok(pending)
    }

    /// All stored toolsets, and how many active sessions each has; the one that was used last comes first.
    pub fn toolsets(&self) -> Result<Vec<(ToolsetInfo, u64)>> {
        let mut toolsets = Vec::new();
        for_each_toolset(&self.0, |info, sessions| toolsets.push((info, sessions)))?;
        Ok(toolsets)
    }
}

/// Loads a file into memory: sessions, confirmations, blocks, and the ids of toolsets and executions. Toolsets
/// and envelopes stay on disk.
pub fn load(connection: &Connection, store: &Sqlite) -> Result<()> {
    for_each_record(connection, "sessions", |record| store.load_session(record))?;
    for_each_record(connection, "confirmations", |record| store.load_confirmation(record))?;
    for_each_record(connection, "tasks", |record| store.load_task(record))?;
    load_blocks(connection, store)?;
    for_each_toolset(connection, |info, _| store.load_toolset(info))?;
    load_calls(connection, store)
}

pub fn for_each_record<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    visit: impl FnMut(T),
) -> Result<()> {
    let mut statement = connection.prepare(&format!("SELECT id, record FROM {table}"))?;
    visit_records(statement.query([])?, table, visit)
}

fn visit_records<T: DeserializeOwned>(
    mut rows: Rows<'_>,
    table: &str,
    mut visit: impl FnMut(T),
) -> Result<()> {
    while let Some(row) = rows.next()? {
        let (id, record): (String, String) = (row.get(0)?, row.get(1)?);
        let record = serde_json::from_str(&record)
            .map_err(|cause| Error::Corrupt(format!("{id} in table {table}: {cause}")))?;
        visit(record);
    }
    Ok(())
}

fn load_blocks(connection: &Connection, store: &Sqlite) -> Result<()> {
    let mut statement = connection.prepare("SELECT org, principal, client_id, until FROM blocks")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (org, principal, client_id, until) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        store.load_block(BlockRecord { org, principal, client_id, until });
    }
    Ok(())
}

/// Passes every toolset to a function, the one that was used last first, with the number of its active sessions.
fn for_each_toolset(connection: &Connection, mut visit: impl FnMut(ToolsetInfo, u64)) -> Result<()> {
    let sql = "SELECT id, created_at, used_at, tools, length(content), (SELECT count(*) FROM sessions
                   WHERE record ->> '$.standing' = 'active' AND record ->> '$.toolset' = toolsets.id)
               FROM toolsets ORDER BY used_at DESC, id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let info = ToolsetInfo {
            id: row.get(0)?,
            created_at: row.get(1)?,
            used_at: row.get(2)?,
            tools: row.get(3)?,
            bytes: row.get::<_, i64>(4)?.unsigned_abs(),
        };
        visit(info, row.get::<_, i64>(5)?.unsigned_abs());
    }
    Ok(())
}

/// The numbers of minutes from this time on.
pub fn minutes(connection: &Connection, from: i64) -> Result<Vec<MinuteRecord>> {
    let sql = "SELECT at, process, content FROM minutes WHERE at >= ?1 ORDER BY at, process";
    let mut statement = connection.prepare_cached(sql)?;
    let record =
        |row: &Row<'_>| Ok(MinuteRecord { at: row.get(0)?, process: row.get(1)?, content: row.get(2)? });
    Ok(statement.query_map([from], record)?.collect::<rusqlite::Result<_>>()?)
}

/// The content of a toolset.
pub fn toolset(connection: &Connection, id: &str) -> Result<Option<Arc<[u8]>>> {
    let mut statement = connection.prepare_cached("SELECT content FROM toolsets WHERE id = ?1")?;
    let content = statement.query_row([id], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(content.map(Arc::from))
}

fn load_calls(connection: &Connection, store: &Sqlite) -> Result<()> {
    let sql = "SELECT number, session, execution, digest, idempotent, at, envelope IS NOT NULL
               FROM calls ORDER BY number";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (session, id): (String, String) = (row.get(1)?, row.get(2)?);
        let execution = Execution {
            number: row.get::<_, i64>(0)?.unsigned_abs(),
            digest: row.get(3)?,
            idempotent: row.get(4)?,
            claimed_at: row.get(5)?,
            args: None,
            stage: ExecutionStage::Orphaned,
        };
        store.load_execution(&session, &id, execution, row.get(6)?);
    }
    Ok(())
}

pub fn audit_rows(connection: &Connection, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
    let sql = "SELECT number, chain, position, previous, hash, entry FROM audit
               WHERE number >= coalesce((SELECT max(number) FROM audit WHERE number <= ?1 + 1), 0)
               ORDER BY number LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((signed(after), signed((limit as u64).saturating_add(1))))?;
    let mut entries = Vec::new();
    while entries.len() < limit
        && let Some(row) = rows.next()?
    {
        entries.extend(split_audit_row(row)?.into_iter().filter(|entry| entry.number > after));
    }
    entries.truncate(limit);
    Ok(entries)
}

/// The number of the last audit entry, and its chain.
pub fn end_of_audit(connection: &Connection) -> Result<Option<(u64, Chain)>> {
    let sql = "SELECT number, chain, position, hash, entry FROM audit ORDER BY number DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let (number, position) = (row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(2)?.unsigned_abs());
        let following = audit_compression::decompress(row.get_ref(4)?)?.matches('\n').count() as u64;
        let chain = Chain::resume(row.get::<_, String>(1)?, position + following, row.get(3)?);
        Ok((number + following, chain))
    };
    Ok(connection.query_row(sql, [], read).optional()?)
}

/// The entries of one row. Only the hash of the last is stored: if any entry was edited, that hash does not match.
fn split_audit_row(row: &Row<'_>) -> rusqlite::Result<Vec<AuditRow>> {
    let (number, position) = (row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(2)?.unsigned_abs());
    let mut chain = Chain::resume(row.get::<_, String>(1)?, position.saturating_sub(1), row.get(3)?);
    let text = audit_compression::decompress(row.get_ref(5)?)?;
    let mut entries: Vec<AuditRow> = (number..)
        .zip(text.split('\n'))
        .map(|(number, text)| chain.append(number, text.to_owned()))
        .collect();
    if let Some(last) = entries.last_mut() {
        last.hash = hex(&row.get::<_, [u8; 32]>(4)?);
    }
    Ok(entries)
}

pub fn execution(
    connection: &Connection,
    number: u64,
    session: &str,
    execution: &str,
) -> Result<Option<ExecutionRecord>> {
    let sql = "SELECT digest, idempotent, envelope, args FROM calls
               WHERE number = ?1 AND session = ?2 AND execution = ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((signed(number), session, execution))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let status = match row.get::<_, Option<String>>(2)? {
        Some(text) => {
            let envelope: Envelope = serde_json::from_str(&text)
                .map_err(|cause| Error::Corrupt(format!("the envelope of execution {number}: {cause}")))?;
            ExecutionStatus::Finished(Arc::new(envelope))
        }
        None if row.get(1)? => ExecutionStatus::Abandoned,
        None => ExecutionStatus::InDoubt,
    };
    let args = row.get::<_, Option<String>>(3)?.map(Arc::from);
    Ok(Some(ExecutionRecord { digest: row.get(0)?, args, status }))
}

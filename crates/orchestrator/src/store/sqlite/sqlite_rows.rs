//! Reads rows of the file: evicted executions and the audit.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::{audit_compression, load, signed};
use crate::store::chain::Chain;
use crate::store::records::{
    AuditRow, ConfirmationRecord, ConfirmationStatus, ExecutionRecord, ExecutionStatus,
};
use crate::store::{Error, Result};

/// A file that is open for reading only.
#[derive(Debug)]
pub struct ReadOnly(Connection);

impl ReadOnly {
    pub(super) const fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// Up to `limit` rows of all chains in the order they were written, after the row with this number.
    pub fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        audit_rows(&self.0, after, limit)
    }

    /// The pending confirmations, oldest first.
    pub fn pending_confirmations(&self) -> Result<Vec<ConfirmationRecord>> {
        let mut pending = Vec::new();
        load::for_each_record(&self.0, "confirmations", |record: ConfirmationRecord| pending.push(record))?;
        pending.retain(|record| record.status == ConfirmationStatus::Pending);
        pending.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(pending)
    }
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

/// What the file has under the number of an execution.
pub enum StoredExecution {
    /// An execution with another id.
    Other,
    NotFound,
    Found(ExecutionRecord),
}

pub fn execution(
    connection: &Connection,
    number: u64,
    session: &str,
    execution: &str,
) -> Result<StoredExecution> {
    let sql =
        "SELECT session = ?2 AND execution = ?3, digest, idempotent, envelope FROM calls WHERE number = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((signed(number), session, execution))?;
    let Some(row) = rows.next()? else { return Ok(StoredExecution::NotFound) };
    if !row.get::<_, bool>(0)? {
        return Ok(StoredExecution::Other);
    }
    let status = match row.get::<_, Option<String>>(3)? {
        Some(text) => {
            let envelope: Envelope = serde_json::from_str(&text)
                .map_err(|cause| Error::Corrupt(format!("the envelope of execution {number}: {cause}")))?;
            ExecutionStatus::Finished(Arc::new(envelope))
        }
        None if row.get(2)? => ExecutionStatus::Abandoned,
        None => ExecutionStatus::InDoubt,
    };
    Ok(StoredExecution::Found(ExecutionRecord { digest: row.get(1)?, status }))
}

//! What is read from the file while it is served: envelopes that have left memory, and the audit.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::{load, signed};
use crate::store::chain::Chain;
use crate::store::records::{Answer, AuditRow, Confirmation};
use crate::store::{Error, Result, SharedEnvelope};

/// A file that is looked at, not served.
#[derive(Debug)]
pub struct ReadOnly(Connection);

impl ReadOnly {
    pub(super) const fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// Up to `limit` rows of all chains, in the order they were written, after the row with this number.
    pub fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        audit(&self.0, after, limit)
    }

    /// The questions that wait for an answer, oldest first.
    pub fn pending(&self) -> Result<Vec<Confirmation>> {
        let mut waiting = Vec::new();
        load::records(&self.0, "confirmations", |asked: Confirmation| waiting.push(asked))?;
        waiting.retain(|asked| asked.answer == Answer::Pending);
        waiting.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(waiting)
    }
}

pub fn audit(connection: &Connection, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
    let sql = "SELECT number, chain, position, previous, hash, entry FROM audit
               WHERE number > ?1 ORDER BY number LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map((signed(after), signed(limit as u64)), audit_row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The number of the last row, and the chain that it ends.
pub fn end_of_audit(connection: &Connection) -> Result<Option<(u64, Chain)>> {
    let sql = "SELECT number, chain, position, hash FROM audit ORDER BY number DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let (number, name, position) =
            (row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?);
        Ok((number.unsigned_abs(), Chain::after(name, position.unsigned_abs(), row.get(3)?)))
    };
    Ok(connection.query_row(sql, [], read).optional()?)
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        number: row.get::<_, i64>(0)?.unsigned_abs(),
        chain: row.get(1)?,
        position: row.get::<_, i64>(2)?.unsigned_abs(),
        previous: hex(&row.get::<_, [u8; 32]>(3)?),
        hash: hex(&row.get::<_, [u8; 32]>(4)?),
        entry: row.get(5)?,
    })
}

pub fn envelope(connection: &Connection, number: u64) -> Result<Option<SharedEnvelope>> {
    let mut statement = connection.prepare_cached("SELECT envelope FROM envelopes WHERE number = ?1")?;
    let text: Option<String> = statement.query_row([signed(number)], |row| row.get(0)).optional()?;
    let Some(text) = text else { return Ok(None) };
    let envelope: Envelope = serde_json::from_str(&text)
        .map_err(|cause| Error::Corrupt(format!("the envelope of execution {number}: {cause}")))?;
    Ok(Some(Arc::new(envelope)))
}

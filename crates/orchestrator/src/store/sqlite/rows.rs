//! What is read from the file while it is served: envelopes that have left memory, and the audit.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};
use toolwright_contract::Envelope;
use toolwright_registry::hex;

use super::{lines, load, signed};
use crate::store::chain::Chain;
use crate::store::records::{Answer, AuditRow, Confirmation, Standing, Status};
use crate::store::{Error, Result};

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

/// Lines of the audit, of which each row has several.
pub fn audit(connection: &Connection, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
    let sql = "SELECT number, chain, position, previous, hash, entry FROM audit
               WHERE number >= coalesce((SELECT max(number) FROM audit WHERE number <= ?1 + 1), 0)
               ORDER BY number LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((signed(after), signed((limit as u64).saturating_add(1))))?;
    let mut lines = Vec::new();
    while lines.len() < limit
        && let Some(row) = rows.next()?
    {
        let mut found = audit_lines(row)?;
        found.retain(|line| line.number > after);
        lines.append(&mut found);
    }
    lines.truncate(limit);
    Ok(lines)
}

/// The number of the last line, and the chain that it ends.
pub fn end_of_audit(connection: &Connection) -> Result<Option<(u64, Chain)>> {
    let sql = "SELECT number, chain, position, hash, entry FROM audit ORDER BY number DESC LIMIT 1";
    let read = |row: &Row<'_>| {
        let (number, name, position) = (
            row.get::<_, i64>(0)?.unsigned_abs(),
            row.get::<_, String>(1)?,
            row.get::<_, i64>(2)?.unsigned_abs(),
        );
        let more = lines::unpacked(row.get_ref(4)?)?.matches('\n').count() as u64;
        Ok((number + more, Chain::after(name, position + more, row.get(3)?)))
    };
    Ok(connection.query_row(sql, [], read).optional()?)
}

/// The lines of one row. Only the hash of the last is kept: if any of them was changed, it is that one which does not fit.
fn audit_lines(row: &Row<'_>) -> rusqlite::Result<Vec<AuditRow>> {
    let (number, position) = (row.get::<_, i64>(0)?.unsigned_abs(), row.get::<_, i64>(2)?.unsigned_abs());
    let mut chain = Chain::after(row.get::<_, String>(1)?, position.saturating_sub(1), row.get(3)?);
    let text = lines::unpacked(row.get_ref(5)?)?;
    let mut lines: Vec<AuditRow> =
        (number..).zip(text.split('\n')).map(|(number, line)| chain.link(number, line.to_owned())).collect();
    if let Some(last) = lines.last_mut() {
        last.hash = hex(&row.get::<_, [u8; 32]>(4)?);
    }
    Ok(lines)
}

/// What is on disk of a call.
pub enum Call {
    /// The number is that of another one.
    Other,
    /// Nothing, yet.
    Unknown,
    Known(Standing),
}

pub fn call(connection: &Connection, number: u64, session: &str, execution: &str) -> Result<Call> {
    let sql =
        "SELECT session = ?2 AND execution = ?3, digest, idempotent, envelope FROM calls WHERE number = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((signed(number), session, execution))?;
    let Some(row) = rows.next()? else { return Ok(Call::Unknown) };
    if !row.get::<_, bool>(0)? {
        return Ok(Call::Other);
    }
    let status = match row.get::<_, Option<String>>(3)? {
        Some(text) => {
            let envelope: Envelope = serde_json::from_str(&text)
                .map_err(|cause| Error::Corrupt(format!("the envelope of execution {number}: {cause}")))?;
            Status::Finished(Arc::new(envelope))
        }
        None if row.get(2)? => Status::Abandoned,
        None => Status::InDoubt,
    };
    Ok(Call::Known(Standing { digest: row.get(1)?, status }))
}

//! One change as statements.

use rusqlite::Connection;
use serde::Serialize;

use super::signed;
use crate::store::chain::{self, Chain, Link};
use crate::store::journal::{Change, Forgotten};
use crate::store::records::{AuditEntry, Claim, Confirmation, SessionRecord};
use crate::store::{Error, Result};

/// The end of the audit: the chain of this process, and the number of the next row.
#[derive(Debug, Clone)]
pub struct AuditEnd {
    pub chain: Chain,
    pub next: u64,
}

/// Applies a change, within a transaction.
pub fn apply(connection: &Connection, change: &Change, end: &mut AuditEnd) -> Result<()> {
    match change {
        Change::Session(record) => session(connection, record),
        Change::Claimed { number, claim, used } => {
            claimed(connection, *number, claim)?;
            used.as_ref().map_or(Ok(()), |used| confirmation(connection, used))
        }
        Change::Settled { number, envelope, audit: entry } => {
            let sql = "INSERT OR REPLACE INTO envelopes (number, envelope) VALUES (?1, ?2)";
            connection.prepare_cached(sql)?.execute((signed(*number), envelope))?;
            audit(connection, entry, end)
        }
        Change::Confirmation(asked) => confirmation(connection, asked),
        Change::Audit(entry) => audit(connection, entry, end),
        Change::Forgotten(forgotten) => forget(connection, forgotten),
    }
}

fn session(connection: &Connection, record: &SessionRecord) -> Result<()> {
    let sql = "INSERT INTO sessions (id, record) VALUES (?1, ?2)
               ON CONFLICT (id) DO UPDATE SET record = excluded.record";
    connection.prepare_cached(sql)?.execute((&record.id, json(record)?))?;
    Ok(())
}

fn claimed(connection: &Connection, number: u64, claim: &Claim) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO claims (number, session, execution, digest, idempotent, turn, at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let turn = claim.budget.map(|(turn, _)| signed(turn));
    let Claim { session, execution, digest, idempotent, now, .. } = claim;
    connection.prepare_cached(sql)?.execute((
        signed(number),
        session,
        execution,
        digest.as_slice(),
        idempotent,
        turn,
        now,
    ))?;
    Ok(())
}

fn confirmation(connection: &Connection, asked: &Confirmation) -> Result<()> {
    let sql = "INSERT INTO confirmations (id, record) VALUES (?1, ?2)
               ON CONFLICT (id) DO UPDATE SET record = excluded.record";
    connection.prepare_cached(sql)?.execute((&asked.id, json(asked)?))?;
    Ok(())
}

fn audit(connection: &Connection, entry: &AuditEntry, end: &mut AuditEnd) -> Result<()> {
    let text = chain::text(entry);
    let Link { position, previous, hash } = end.chain.link_text(&text);
    let sql = "INSERT INTO audit (number, chain, position, previous, hash, entry)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row =
        (signed(end.next), end.chain.name(), signed(position), previous.as_slice(), hash.as_slice(), text);
    connection.prepare_cached(sql)?.execute(row)?;
    end.next += 1;
    Ok(())
}

fn forget(connection: &Connection, forgotten: &Forgotten) -> Result<()> {
    let Forgotten { session, executions, questions } = forgotten;
    for number in executions {
        for sql in ["DELETE FROM claims WHERE number = ?1", "DELETE FROM envelopes WHERE number = ?1"] {
            connection.prepare_cached(sql)?.execute([signed(*number)])?;
        }
    }
    for id in questions {
        connection.prepare_cached("DELETE FROM confirmations WHERE id = ?1")?.execute([id])?;
    }
    if let Some(id) = session {
        connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id])?;
    }
    Ok(())
}

fn json(record: &impl Serialize) -> Result<String> {
    serde_json::to_string(record).map_err(|cause| Error::Corrupt(cause.to_string()))
}

//! Changes as statements.

use rusqlite::{CachedStatement, Connection};
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

/// The statements of every call, found once for a whole transaction.
pub struct Statements<'c> {
    connection: &'c Connection,
    claim: CachedStatement<'c>,
    envelope: CachedStatement<'c>,
    audit: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub fn new(connection: &'c Connection) -> Result<Self> {
        let claim = "INSERT OR REPLACE INTO claims (number, session, execution, digest, idempotent, turn, at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let envelope = "INSERT OR REPLACE INTO envelopes (number, envelope) VALUES (?1, ?2)";
        let audit = "INSERT INTO audit (number, chain, position, previous, hash, entry)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        Ok(Self {
            connection,
            claim: connection.prepare_cached(claim)?,
            envelope: connection.prepare_cached(envelope)?,
            audit: connection.prepare_cached(audit)?,
        })
    }

    /// Applies a change, within a transaction.
    pub fn apply(&mut self, change: &Change, end: &mut AuditEnd) -> Result<()> {
        match change {
            Change::Session(record) => session(self.connection, record),
            Change::Claimed { number, claim, used } => {
                self.claimed(*number, claim)?;
                used.as_ref().map_or(Ok(()), |used| confirmation(self.connection, used))
            }
            Change::Settled { number, envelope, audit } => {
                self.envelope.execute((signed(*number), envelope))?;
                self.audit(audit, end)
            }
            Change::Confirmation(asked) => confirmation(self.connection, asked),
            Change::Audit(entry) => self.audit(entry, end),
            Change::Forgotten(forgotten) => forget(self.connection, forgotten),
        }
    }

    fn claimed(&mut self, number: u64, claim: &Claim) -> Result<()> {
        let turn = claim.budget.map(|(turn, _)| signed(turn));
        let Claim { session, execution, digest, idempotent, now, .. } = claim;
        let row = (signed(number), session, &**execution, digest.as_slice(), idempotent, turn, now);
        self.claim.execute(row)?;
        Ok(())
    }

    fn audit(&mut self, entry: &AuditEntry, end: &mut AuditEnd) -> Result<()> {
        let text = chain::text(entry);
        let Link { position, previous, hash } = end.chain.link_text(&text);
        let chain = end.chain.name();
        let row = (signed(end.next), chain, signed(position), previous.as_slice(), hash.as_slice(), text);
        self.audit.execute(row)?;
        end.next += 1;
        Ok(())
    }
}

fn session(connection: &Connection, record: &SessionRecord) -> Result<()> {
    let sql = "INSERT INTO sessions (id, record) VALUES (?1, ?2)
               ON CONFLICT (id) DO UPDATE SET record = excluded.record";
    connection.prepare_cached(sql)?.execute((&record.id, json(record)?))?;
    Ok(())
}

fn confirmation(connection: &Connection, asked: &Confirmation) -> Result<()> {
    let sql = "INSERT INTO confirmations (id, record) VALUES (?1, ?2)
               ON CONFLICT (id) DO UPDATE SET record = excluded.record";
    connection.prepare_cached(sql)?.execute((&asked.id, json(asked)?))?;
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

//! Changes as statements: what one transaction writes. What several changes say of the same thing is written once, and the
//! lines of the audit in rows of many.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rusqlite::{CachedStatement, Connection};
use serde::Serialize;

use super::{lines, signed};
use crate::store::chain::{Chain, Link};
use crate::store::journal::{Change, Forgotten, Line};
use crate::store::records::{Claim, Confirmation, SessionRecord};
use crate::store::{Error, Result};

/// The most lines of the audit in one row: whoever looks at one reads them all.
const LINES: u64 = 256;

/// The end of the audit: the chain of this process, and the number of the next line.
#[derive(Debug, Clone)]
pub struct AuditEnd {
    pub chain: Chain,
    pub next: u64,
}

/// What a transaction has still to write. `'a` is that of the changes.
pub struct Batch<'c, 'a> {
    connection: &'c Connection,
    call: CachedStatement<'c>,
    envelope: CachedStatement<'c>,
    audit: CachedStatement<'c>,
    end: AuditEnd,
    /// Calls that were claimed: most are settled before the batch is over, and take one row then.
    claimed: HashMap<u64, &'a Claim, RandomState>,
    /// Sessions as they were last.
    sessions: HashMap<&'a str, &'a SessionRecord, RandomState>,
    lines: Lines,
}

/// Lines of the audit that make one row, and how the chain was before them.
#[derive(Default)]
struct Lines {
    text: String,
    count: u64,
    first: Option<Link>,
}

impl<'c, 'a> Batch<'c, 'a> {
    pub fn new(connection: &'c Connection, end: AuditEnd) -> Result<Self> {
        let call = "INSERT OR REPLACE INTO calls (number, session, execution, digest, idempotent, turn, at, envelope)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let envelope = "UPDATE calls SET envelope = ?2 WHERE number = ?1";
        let audit = "INSERT INTO audit (number, chain, position, previous, hash, entry)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        Ok(Self {
            connection,
            call: connection.prepare_cached(call)?,
            envelope: connection.prepare_cached(envelope)?,
            audit: connection.prepare_cached(audit)?,
            end,
            claimed: HashMap::default(),
            sessions: HashMap::default(),
            lines: Lines::default(),
        })
    }

    /// Takes a change up, within a transaction.
    pub fn apply(&mut self, change: &'a Change) -> Result<()> {
        match change {
            Change::Session(record) => {
                self.sessions.insert(&record.id, record);
                Ok(())
            }
            Change::Claimed { number, claim, used } => {
                self.claimed.insert(*number, claim);
                used.as_ref().map_or(Ok(()), |used| confirmation(self.connection, used))
            }
            Change::Settled { number, envelope, audit } => {
                match self.claimed.remove(number) {
                    Some(claim) => self.call(*number, claim, Some(envelope))?,
                    None => drop(self.envelope.execute((signed(*number), envelope))?),
                }
                self.line(audit)
            }
            Change::Confirmation(asked) => confirmation(self.connection, asked),
            Change::Audit(line) => self.line(line),
            Change::Forgotten(forgotten) => {
                self.catch_up()?;
                forget(self.connection, forgotten)
            }
        }
    }

    /// Writes what is left, and says how the audit ends now.
    pub fn finish(mut self) -> Result<AuditEnd> {
        self.catch_up()?;
        self.row()?;
        Ok(self.end)
    }

    /// Writes the sessions, and the calls that are not over.
    fn catch_up(&mut self) -> Result<()> {
        for (_, record) in self.sessions.drain() {
            session(self.connection, record)?;
        }
        let mut claimed: Vec<_> = self.claimed.drain().collect();
        claimed.sort_unstable_by_key(|(number, _)| *number);
        claimed.into_iter().try_for_each(|(number, claim)| self.call(number, claim, None))
    }

    fn call(&mut self, number: u64, claim: &Claim, envelope: Option<&String>) -> Result<()> {
        let turn = claim.budget.map(|(turn, _)| signed(turn));
        let Claim { session, execution, digest, idempotent, now, .. } = claim;
        let row = (signed(number), session, &**execution, digest.as_slice(), idempotent, turn, now, envelope);
        self.call.execute(row)?;
        Ok(())
    }

    fn line(&mut self, Line(text): &Line) -> Result<()> {
        let link = self.end.chain.link_text(text);
        self.end.next += 1;
        let lines = &mut self.lines;
        lines.first.get_or_insert(link);
        if lines.count > 0 {
            lines.text.push('\n');
        }
        lines.text.push_str(text);
        lines.count += 1;
        if lines.count == LINES { self.row() } else { Ok(()) }
    }

    /// Writes the lines that were gathered as one row, with the number and the position of the first.
    fn row(&mut self) -> Result<()> {
        let Lines { text, count, first: Some(Link { position, previous, .. }) } =
            std::mem::take(&mut self.lines)
        else {
            return Ok(());
        };
        let AuditEnd { chain, next } = &self.end;
        let (number, hash) = (signed(next - count), chain.head());
        let row = (
            number,
            chain.name(),
            signed(position),
            previous.as_slice(),
            hash.as_slice(),
            lines::packed(text),
        );
        self.audit.execute(row)?;
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
        connection.prepare_cached("DELETE FROM calls WHERE number = ?1")?.execute([signed(*number)])?;
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

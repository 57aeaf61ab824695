//! Applies changes as SQL statements in one transaction. Several changes of one record are written once, and audit
//! entries in rows of many.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use rusqlite::{CachedStatement, Connection};
use serde::Serialize;

use super::{audit_compression, conversation_rows, schema, signed, sqlite_audit};
use crate::store::audit_segment::SegmentBuilder;
use crate::store::chain::Chain;
use crate::store::journal::{AuditText, CallRow, Change, Deletion};
use crate::store::records::{BlockRecord, Claim, MinuteRecord, SessionRecord, ToolsetInfo, ToolsetRecord};
use crate::store::{Error, RETENTION_MS, Result};

/// The most audit entries in one row. A reader of one entry reads the whole row.
const MAX_ENTRIES_PER_ROW: u64 = 256;

/// The end of the audit: this process's chain and the number of the next entry.
#[derive(Debug, Clone)]
pub struct AuditEnd {
    pub chain: Chain,
    pub next: u64,
    /// The segment of the last entries.
    pub segment: SegmentBuilder,
}

/// The changes of a transaction that are not written yet. `'a` is the lifetime of the changes.
pub struct Batch<'c, 'a> {
    connection: &'c Connection,
    write_call: CachedStatement<'c>,
    insert_audit: CachedStatement<'c>,
    end: AuditEnd,
    /// Claims. Most are settled in the same batch, and become one row.
    claims: HashMap<u64, &'a Claim, RandomState>,
    /// The latest record of each session.
    sessions: HashMap<&'a str, &'a SessionRecord, RandomState>,
    row: AuditRowBuilder,
}

/// Audit entries that become one row.
#[derive(Default)]
struct AuditRowBuilder {
    text: String,
    count: u64,
    /// Position and previous hash of the first.
    position: u64,
    previous: [u8; 32],
}

impl<'c, 'a> Batch<'c, 'a> {
    pub fn new(connection: &'c Connection, end: AuditEnd) -> Result<Self> {
        let call = "INSERT INTO calls (number, session, execution, digest, idempotent, at, envelope, args)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                    ON CONFLICT (number) DO UPDATE SET
                        at = excluded.at, envelope = excluded.envelope, args = excluded.args";
        let audit = "INSERT INTO audit (number, chain, position, previous, hash, entry)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        Ok(Self {
            connection,
            write_call: connection.prepare_cached(call)?,
            insert_audit: connection.prepare_cached(audit)?,
            end,
            claims: HashMap::default(),
            sessions: HashMap::default(),
            row: AuditRowBuilder::default(),
        })
    }

    pub fn apply(&mut self, change: &'a Change) -> Result<()> {
        match change {
            Change::Session(record) => _ = self.sessions.insert(&record.id, record),
            Change::Claim { number, claim, charged, used } => {
                self.claims.insert(*number, claim);
                if let Some(record) = charged {
                    self.sessions.insert(&record.id, record);
                }
                if let Some(used) = used {
                    write_record(self.connection, "confirmations", &used.id, &**used)?;
                }
            }
            Change::Settlement { call, envelope, args, audit } => {
                self.claims.remove(&call.number);
                self.write_call(call, Some(envelope), args.as_deref())?;
                self.append_audit(audit)?;
            }
            Change::Confirmation(record) => {
                write_record(self.connection, "confirmations", &record.id, &**record)?;
            }
            Change::Task(task) => write_record(self.connection, "tasks", &task.id, &**task)?,
            Change::Block(block) => write_block(self.connection, block)?,
            Change::Toolset(toolset) => write_toolset(self.connection, toolset)?,
            Change::ToolsetUsed { id, at } => {
                let sql = "UPDATE toolsets SET used_at = max(used_at, ?2) WHERE id = ?1";
                self.connection.prepare_cached(sql)?.execute((id, at))?;
            }
            Change::Minute(minute) => write_minute(self.connection, minute)?,
            Change::Log { session, entries } => {
                if !self.sessions.contains_key(&**session) {
                    require_session(self.connection, session)?;
                }
                conversation_rows::insert(self.connection, session, entries)?;
            }
            Change::Audit(text) => self.append_audit(text)?,
            Change::WriteTest => schema::write_version(self.connection)?,
            Change::Deletion(deletion) => {
                self.write_sessions_and_claims()?;
                delete(self.connection, deletion)?;
            }
        }
        Ok(())
    }

    /// Writes the rest, and returns the new end of the audit.
    pub fn finish(mut self) -> Result<AuditEnd> {
        self.write_sessions_and_claims()?;
        self.write_audit_row()?;
        Ok(self.end)
    }

    fn write_sessions_and_claims(&mut self) -> Result<()> {
        for (_, record) in self.sessions.drain() {
            write_record(self.connection, "sessions", &record.id, record)?;
        }
        let mut claims: Vec<_> = self.claims.drain().collect();
        claims.sort_unstable_by_key(|(number, _)| *number);
        claims.into_iter().try_for_each(|(number, claim)| {
            let Claim { session, execution, digest, idempotent, now, .. } = claim;
            let (session, execution) = (session.clone(), Arc::clone(execution));
            let call = CallRow {
                number,
                session,
                execution,
                digest: *digest,
                idempotent: *idempotent,
                claimed_at: *now,
            };
            self.write_call(&call, None, None)
        })
    }

    fn write_call(&mut self, call: &CallRow, envelope: Option<&String>, args: Option<&str>) -> Result<()> {
        let CallRow { number, session, execution, digest, idempotent, claimed_at } = call;
        let row = (
            signed(*number),
            session,
            &**execution,
            digest.as_slice(),
            idempotent,
            claimed_at,
            envelope,
            args,
        );
        self.write_call.execute(row)?;
        Ok(())
    }

    fn append_audit(&mut self, AuditText { text, keys }: &AuditText) -> Result<()> {
        if let Some(segment) = self.end.segment.add(self.end.next, keys) {
            sqlite_audit::write_segment(self.connection, &segment)?;
        }
        let (row, chain) = (&mut self.row, &mut self.end.chain);
        if row.count == 0 {
            (row.position, row.previous) = (chain.position() + 1, chain.head());
        } else {
            row.text.push('\n');
        }
        chain.link(text);
        self.end.next += 1;
        row.text.push_str(text);
        row.count += 1;
        if row.count == MAX_ENTRIES_PER_ROW { self.write_audit_row() } else { Ok(()) }
    }

    /// Writes the collected entries as one row: number, position and previous hash of the first, hash of the last.
    fn write_audit_row(&mut self) -> Result<()> {
        let AuditRowBuilder { text, count, position, previous } = std::mem::take(&mut self.row);
        if count == 0 {
            return Ok(());
        }
        let AuditEnd { chain, next, .. } = &self.end;
        let row = (
            signed(next - count),
            chain.name(),
            signed(position),
            previous.as_slice(),
            chain.head(),
            audit_compression::compress(text),
        );
        self.insert_audit.execute(row)?;
        Ok(())
    }
}

/// A session that was created relaxed may not have reached the disk.
fn require_session(connection: &Connection, id: &str) -> Result<()> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?;
    match statement.exists([id])? {
        true => Ok(()),
        false => Err(Error::Unavailable("the session could not be written".to_owned())),
    }
}

fn write_record(connection: &Connection, table: &str, id: &str, record: &impl Serialize) -> Result<()> {
    let sql = format!(
        "INSERT INTO {table} (id, record) VALUES (?1, ?2)
         ON CONFLICT (id) DO UPDATE SET record = excluded.record"
    );
    let json = serde_json::to_string(record).map_err(|cause| Error::Corrupt(cause.to_string()))?;
    connection.prepare_cached(&sql)?.execute((id, json))?;
    Ok(())
}

pub fn write_block(connection: &Connection, block: &BlockRecord) -> Result<()> {
    let sql = "INSERT INTO blocks (org, principal, client_id, until) VALUES (?1, ?2, ?3, ?4)
               ON CONFLICT (org, principal, client_id) DO UPDATE SET until = excluded.until";
    let BlockRecord { org, principal, client_id, until } = block;
    connection.prepare_cached(sql)?.execute((org, principal, client_id, until))?;
    Ok(())
}

fn write_toolset(connection: &Connection, toolset: &ToolsetRecord) -> Result<()> {
    let sql = "INSERT INTO toolsets (id, created_at, used_at, tools, content) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at)";
    let ToolsetInfo { id, created_at, used_at, tools, .. } = &toolset.info;
    connection.prepare_cached(sql)?.execute((id, created_at, used_at, tools, &*toolset.content))?;
    Ok(())
}

fn write_minute(connection: &Connection, minute: &MinuteRecord) -> Result<()> {
    let MinuteRecord { at, process, content } = minute;
    connection.prepare_cached("DELETE FROM minutes WHERE at < ?1")?.execute([at - RETENTION_MS])?;
    let sql = "INSERT OR REPLACE INTO minutes (at, process, content) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute((at, process, content))?;
    Ok(())
}

fn delete(connection: &Connection, deletion: &Deletion) -> Result<()> {
    let Deletion { session, executions, confirmations, tasks, blocks, toolsets } = deletion;
    for id in tasks {
        connection.prepare_cached("DELETE FROM tasks WHERE id = ?1")?.execute([id])?;
    }
    for id in toolsets {
        connection.prepare_cached("DELETE FROM toolsets WHERE id = ?1")?.execute([id])?;
    }
    for number in executions {
        connection.prepare_cached("DELETE FROM calls WHERE number = ?1")?.execute([signed(*number)])?;
    }
    for id in confirmations {
        connection.prepare_cached("DELETE FROM confirmations WHERE id = ?1")?.execute([id])?;
    }
    for BlockRecord { org, principal, client_id, .. } in blocks {
        let sql = "DELETE FROM blocks WHERE org = ?1 AND principal = ?2 AND client_id = ?3";
        connection.prepare_cached(sql)?.execute((org, principal, client_id))?;
    }
    if let Some(id) = session {
        conversation_rows::delete(connection, id)?;
        connection.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([id])?;
    }
    Ok(())
}

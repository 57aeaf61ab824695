//! The journal of a store that is in memory only: it holds the conversation logs, the contents of toolsets, and the
//! audit, which is hashed when it is read.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use toolwright_contract::Envelope;

use super::lock;
use crate::store::Result;
use crate::store::chain::Chain;
use crate::store::conversation::LogEntry;
use crate::store::journal::{Change, Deletion, Journal, LostChanges, PendingWrite};
use crate::store::records::{AuditRow, Durability, ExecutionRecord};

#[derive(Debug, Default)]
pub struct VolatileJournal {
    audit: Mutex<Audit>,
    /// The contents of toolsets, by id.
    toolsets: Mutex<HashMap<String, Arc<[u8]>>>,
    /// The conversation logs, by session.
    logs: Mutex<BTreeMap<String, Vec<LogEntry>>>,
}

#[derive(Debug, Default)]
struct Audit {
    unhashed: Vec<String>,
    rows: Vec<AuditRow>,
    chain: Option<Chain>,
}

impl Journal for VolatileJournal {
    fn write(&self, change: Change, _durability: Durability) -> PendingWrite {
        match change {
            Change::Audit(text) | Change::Settlement { audit: text, .. } => {
                lock(&self.audit).unhashed.push(text);
            }
            Change::Log { session, entries } => {
                lock(&self.logs).entry(session).or_default().extend(entries);
            }
            Change::Toolset(toolset) => {
                lock(&self.toolsets).insert(toolset.info.id, toolset.content);
            }
            Change::Deletion(Deletion { session, toolsets, .. }) => {
                if let Some(session) = session {
                    lock(&self.logs).remove(&session);
                }
                lock(&self.toolsets).retain(|id, _| !toolsets.contains(id));
            }
            _ => {}
        }
        PendingWrite::READY
    }

    fn flush(&self, _lost: LostChanges) -> PendingWrite {
        PendingWrite::READY
    }

    fn serialize(&self, _envelope: &Envelope) -> Result<String> {
        Ok(String::new())
    }

    async fn execution(&self, _: u64, _: &str, _: &str) -> Result<Option<ExecutionRecord>> {
        Ok(None)
    }

    async fn toolset(&self, id: &str) -> Result<Option<Arc<[u8]>>> {
        Ok(lock(&self.toolsets).get(id).cloned())
    }

    async fn log_entries(&self, session: &str, after: u64, limit: usize) -> Result<Vec<LogEntry>> {
        let logs = lock(&self.logs);
        let entries = logs.get(session).map(Vec::as_slice).unwrap_or_default();
        let start = entries.partition_point(|entry| entry.position <= after);
        Ok(entries[start..].iter().take(limit).cloned().collect())
    }

    async fn log_end(&self, session: &str) -> Result<u64> {
        let logs = lock(&self.logs);
        Ok(logs.get(session).and_then(|entries| entries.last()).map_or(0, |entry| entry.position))
    }

    async fn last_log_entries(&self, after: &str, limit: usize) -> Result<Vec<(String, LogEntry)>> {
        let logs = lock(&self.logs);
        let logs = logs.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let last = logs.filter_map(|(session, entries)| Some((session.clone(), entries.last()?.clone())));
        Ok(last.take(limit).collect())
    }

    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        let mut audit = lock(&self.audit);
        let Audit { unhashed, rows, chain } = &mut *audit;
        let chain = chain.get_or_insert_with(|| Chain::new("memory"));
        for text in unhashed.drain(..) {
            rows.push(chain.append(rows.len() as u64 + 1, text));
        }
        let start = usize::try_from(after).unwrap_or(usize::MAX).min(rows.len());
        Ok(rows[start..].iter().take(limit).cloned().collect())
    }
}

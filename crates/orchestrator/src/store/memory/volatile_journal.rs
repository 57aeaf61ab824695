//! The journal of a store that is in memory only: it holds the conversation logs, the contents of toolsets, and the
//! audit, which is hashed when it is read.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use toolwright_contract::Envelope;

use super::lock;
use crate::store::audit_query::{AuditFilter, AuditPage, AuditQuery, AuditSource, NumberedEntry, read_page};
use crate::store::audit_segment::{Segment, SegmentBuilder};
use crate::store::chain::Chain;
use crate::store::conversation::LogEntry;
use crate::store::journal::{AuditText, Change, Deletion, Journal, LostChanges, PendingWrite};
use crate::store::records::{AuditRow, Durability, ExecutionRecord, MinuteRecord};
use crate::store::{RETENTION_MS, Result};

#[derive(Debug, Default)]
pub struct VolatileJournal {
    audit: Box<Mutex<Audit>>,
    /// The contents of toolsets, by id.
    toolsets: Mutex<HashMap<String, Arc<[u8]>>>,
    /// The conversation logs, by session.
    logs: Mutex<BTreeMap<String, Vec<LogEntry>>>,
    /// The numbers of minutes, by time and process.
    minutes: Mutex<BTreeMap<(i64, String), Arc<str>>>,
}

#[derive(Debug, Default)]
struct Audit {
    unhashed: Vec<String>,
    rows: Vec<AuditRow>,
    chain: Option<Chain>,
    segments: Vec<Segment>,
    /// The segment of the last entries.
    next_segment: SegmentBuilder,
}

impl Audit {
    fn append(&mut self, AuditText { text, keys }: AuditText) {
        self.unhashed.push(text);
        let number = (self.rows.len() + self.unhashed.len()) as u64;
        self.segments.extend(self.next_segment.add(number, &keys));
    }

    /// All rows.
    fn rows(&mut self) -> &[AuditRow] {
        let chain = self.chain.get_or_insert_with(|| Chain::new("memory"));
        for text in self.unhashed.drain(..) {
            self.rows.push(chain.append(self.rows.len() as u64 + 1, text));
        }
        &self.rows
    }
}

impl AuditSource for Audit {
    fn candidates(&self, before: u64, filter: &AuditFilter, limit: usize) -> Result<Vec<(u64, u64)>> {
        let terms = filter.terms();
        let indexed = self.segments.last().map_or(0, |segment| segment.last);
        let rest = (indexed + 1, self.rows.len() as u64);
        let rest = (rest.0 <= rest.1 && rest.0 < before).then_some(rest);
        let segments = self.segments.iter().rev();
        let segments = segments.filter(|segment| segment.first < before && segment.may_match(filter, &terms));
        Ok(rest
            .into_iter()
            .chain(segments.map(|segment| (segment.first, segment.last)))
            .take(limit)
            .collect())
    }

    fn entries(&self, first: u64, last: u64) -> Result<Vec<NumberedEntry>> {
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(self.rows.len());
        let rows = self.rows[index(first - 1)..index(last)].iter();
        rows.map(|row| NumberedEntry::parse(row.number, &row.entry)).collect()
    }
}

impl Journal for VolatileJournal {
    fn write(&self, change: Change, _durability: Durability) -> PendingWrite {
        match change {
            Change::Audit(text) | Change::Settlement { audit: text, .. } => lock(&self.audit).append(text),
            Change::Log { session, entries } => {
                lock(&self.logs).entry(session).or_default().extend(entries);
            }
            Change::Toolset(toolset) => {
                lock(&self.toolsets).insert(toolset.info.id, toolset.content);
            }
            Change::Minute(MinuteRecord { at, process, content }) => {
                let mut minutes = lock(&self.minutes);
                minutes.retain(|(old, _), _| *old >= at - RETENTION_MS);
                minutes.insert((at, process), content);
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

    async fn minutes(&self, from: i64) -> Result<Vec<MinuteRecord>> {
        let minutes = lock(&self.minutes);
        let record = |((at, process), content): (&(i64, String), &Arc<str>)| MinuteRecord {
            at: *at,
            process: process.clone(),
            content: Arc::clone(content),
        };
        Ok(minutes.range((from, String::new())..).map(record).collect())
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
        let rows = audit.rows();
        let start = usize::try_from(after).unwrap_or(usize::MAX).min(rows.len());
        Ok(rows[start..].iter().take(limit).cloned().collect())
    }

    async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage> {
        let mut audit = lock(&self.audit);
        audit.rows();
        read_page(&*audit, query)
    }
}

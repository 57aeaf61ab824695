//! The calls that have ended: lists of them, and all that is known of one. The caller decides who may see what.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolwright_contract::Envelope;

use crate::orchestrator::Orchestrator;
use crate::store::{self, AuditFilter, AuditQuery, Backend, ExecutionStatus, NumberedEntry};

/// The most audit entries of one call, its nested calls included.
const MAX_ENTRIES: usize = 500;

/// All that is known of one call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallHistory {
    /// Its audit entries, oldest first: refusals, answers to its confirmation request, the run, replays, and entries of
    /// the handler.
    pub entries: Vec<NumberedEntry>,
    /// The audit entries of the calls that its handler has made, and of theirs, oldest first.
    pub nested: Vec<NumberedEntry>,
    /// Whether there are more entries than these.
    pub is_truncated: bool,
    /// Its arguments as JSON text, without those that are `writeOnly`.
    pub args: Option<Arc<str>>,
    pub envelope: Option<Arc<Envelope>>,
    pub source: RecordSource,
}

/// Where arguments and envelope of a call are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordSource {
    /// The store has them.
    Stored,
    /// The store has the claim of a call that runs, or whose outcome is unknown.
    Unsettled,
    /// They are in this process's memory only: the call was refused, or may run again.
    Memory,
    /// Not available: evicted from memory, or run by another process or before a restart.
    Gone,
}

impl Orchestrator {
    /// All that is known of a call. `None` when there is no such call.
    pub fn call_history<'a>(
        &'a self,
        session: &'a str,
        execution: &'a str,
    ) -> BoxFuture<'a, store::Result<Option<CallHistory>>> {
        Box::pin(async move {
            let filter = AuditFilter {
                session: Some(session.to_owned()),
                execution: Some(execution.to_owned()),
                ..AuditFilter::default()
            };
            let query = AuditQuery { filter, before: None, limit: MAX_ENTRIES };
            let page = self.0.store.audit_page(&query).await?;
            let is_own = |found: &NumberedEntry| found.entry.execution_id == execution;
            let (entries, nested): (Vec<_>, Vec<_>) = page.entries.into_iter().rev().partition(is_own);
            if entries.is_empty() {
                return Ok(None);
            }
            let (args, envelope, source) = self.record_of_call(session, execution, &entries).await?;
            let is_truncated = page.next.is_some();
            Ok(Some(CallHistory { entries, nested, is_truncated, args, envelope, source }))
        })
    }

    async fn record_of_call(
        &self,
        session: &str,
        execution: &str,
        entries: &[NumberedEntry],
    ) -> store::Result<(Option<Arc<str>>, Option<Arc<Envelope>>, RecordSource)> {
        let recent = |event| self.0.recent_calls.find(session, execution, event);
        if let Some(record) = self.0.store.execution(session, execution).await? {
            let from_memory = || recent("called").and_then(|call| call.args);
            let args = record.args.or_else(from_memory);
            return Ok(match record.status {
                ExecutionStatus::Finished(envelope) => (args, Some(envelope), RecordSource::Stored),
                ExecutionStatus::Running | ExecutionStatus::InDoubt | ExecutionStatus::Abandoned => {
                    (args, None, RecordSource::Unsettled)
                }
            });
        }
        let last = entries.iter().rev().find_map(|found| recent(&found.entry.event));
        Ok(match last {
            Some(call) => (call.args, call.envelope, RecordSource::Memory),
            None => (None, None, RecordSource::Gone),
        })
    }
}

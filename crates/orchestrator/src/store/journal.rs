//! The journal of a store in memory. A back end that decides in memory and stores its records on disk is a
//! [`Memory`](super::Memory) with a journal.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::oneshot;
use toolwright_contract::Envelope;

use super::audit_query::{AuditKeys, AuditPage, AuditQuery};
use super::chain;
use super::conversation::LogEntry;
use super::records::{
    AuditEntry, AuditRow, BlockRecord, Claim, ConfirmationRecord, Durability, ExecutionRecord, MinuteRecord,
    SessionRecord, ToolsetRecord,
};
use super::task::TaskRecord;
use super::{Error, Result};

/// One change. Changes are journaled in the order in which they were made; each is on disk as a whole or not at all.
#[derive(Debug)]
pub enum Change {
    /// A session was created or updated.
    Session(Arc<SessionRecord>),
    /// An execution was claimed. It has the same number when it is claimed again.
    Claim {
        number: u64,
        claim: Arc<Claim>,
        /// The session after the claim has charged its meters.
        charged: Option<Arc<SessionRecord>>,
        /// The confirmation that the claim has used up.
        used: Option<Arc<ConfirmationRecord>>,
    },
    /// An execution was settled. The envelope has the form that [`Journal::serialize`] gave it.
    Settlement {
        call: CallRow,
        envelope: String,
        args: Option<Arc<str>>,
        audit: AuditText,
    },
    /// A confirmation was created or updated.
    Confirmation(Arc<ConfirmationRecord>),
    /// A task was created or changed.
    Task(Arc<TaskRecord>),
    /// A client was blocked.
    Block(BlockRecord),
    /// A toolset was stored.
    Toolset(ToolsetRecord),
    /// A toolset was used.
    ToolsetUsed {
        id: String,
        at: i64,
    },
    /// The numbers of a minute; older ones are deleted.
    Minute(MinuteRecord),
    /// Entries were appended to a conversation log.
    Log {
        session: String,
        entries: Vec<LogEntry>,
    },
    /// An audit entry.
    Audit(AuditText),
    Deletion(Deletion),
    /// Changes nothing. Its waiter learns whether the disk can be written.
    WriteTest,
}

/// An audit entry: the JSON that is hashed and stored, and its keys. Made outside of any lock.
#[derive(Debug)]
pub struct AuditText {
    pub text: String,
    pub keys: AuditKeys,
}

impl AuditText {
    pub fn new(entry: &AuditEntry) -> Self {
        Self { text: chain::text(entry), keys: AuditKeys::new(entry) }
    }
}

/// The row of an execution without its result. A settlement has it too: the claim's own write may have been lost.
#[derive(Debug, Clone)]
pub struct CallRow {
    pub number: u64,
    pub session: String,
    pub execution: Arc<str>,
    pub digest: [u8; 32],
    pub idempotent: bool,
    pub claimed_at: i64,
}

impl Change {
    /// The audit entry that it writes.
    pub fn audit_entry(&self) -> Option<AuditEntry> {
        match self {
            Self::Settlement { audit, .. } | Self::Audit(audit) => serde_json::from_str(&audit.text).ok(),
            _ => None,
        }
    }

    /// Its subject, for the log. Contents are left out: they may be secret.
    pub fn subject(&self) -> String {
        match self {
            Self::Session(record) => format!("session {}", record.id),
            Self::Claim { claim, .. } => {
                format!("claim of {} in session {}", claim.execution, claim.session)
            }
            Self::Confirmation(confirmation) => format!("confirmation {}", confirmation.id),
            Self::Task(task) => format!("task {}", task.id),
            Self::Log { session, .. } => format!("conversation of session {session}"),
            Self::Block(block) => format!("block of client {}", block.client_id),
            Self::Settlement { .. } | Self::Audit(_) => self.audit_entry().map_or(
                "an audit entry".to_owned(),
                |AuditEntry { event, execution_id, session, .. }| {
                    format!("audit entry {event} of {execution_id} in session {session}")
                },
            ),
            Self::Toolset(toolset) => format!("toolset {}", toolset.info.id),
            Self::ToolsetUsed { id, .. } => format!("use of toolset {id}"),
            Self::Minute(minute) => format!("numbers of the minute {}", minute.at),
            Self::Deletion(_) => "deletion of old records".to_owned(),
            Self::WriteTest => "test of a write".to_owned(),
        }
    }
}

/// Records to delete.
#[derive(Debug, Default)]
pub struct Deletion {
    pub session: Option<String>,
    /// By number.
    pub executions: Vec<u64>,
    /// By id.
    pub confirmations: Vec<String>,
    /// By id.
    pub tasks: Vec<String>,
    pub blocks: Vec<BlockRecord>,
    /// By id.
    pub toolsets: Vec<String>,
}

impl Deletion {
    pub const fn is_empty(&self) -> bool {
        self.session.is_none()
            && self.executions.is_empty()
            && self.confirmations.is_empty()
            && self.tasks.is_empty()
            && self.blocks.is_empty()
            && self.toolsets.is_empty()
    }
}

/// Stores changes.
pub trait Journal: Send + Sync {
    /// Queues a change. Called while the changed record is locked, which keeps the order; must not block. The
    /// result resolves when the change is on disk, or, for a relaxed change, when the queue has room.
    fn write(&self, change: Change, durability: Durability) -> PendingWrite;

    /// Resolves when all changes before are on disk or were lost.
    fn flush(&self, lost: LostChanges) -> PendingWrite;

    /// An envelope in the form in which it is written. Called outside of any lock, since envelopes can be large.
    fn serialize(&self, envelope: &Envelope) -> Result<String>;

    /// Reads an execution that was evicted from memory. `None` when it is not on disk.
    fn execution(
        &self,
        number: u64,
        session: &str,
        execution: &str,
    ) -> impl Future<Output = Result<Option<ExecutionRecord>>> + Send;

    /// The content of a stored toolset, which is not held in memory.
    fn toolset(&self, id: &str) -> impl Future<Output = Result<Option<Arc<[u8]>>>> + Send;

    /// The numbers of minutes from this time on, oldest first.
    fn minutes(&self, from: i64) -> impl Future<Output = Result<Vec<MinuteRecord>>> + Send;

    /// Up to `limit` entries of a conversation log after this position. Those in the queue are left out.
    fn log_entries(
        &self,
        session: &str,
        after: u64,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<LogEntry>>> + Send;

    /// The position of the last entry of a conversation log; 0 when it is empty.
    fn log_end(&self, session: &str) -> impl Future<Output = Result<u64>> + Send;

    /// The last entries of up to `limit` conversation logs, by session, after this session.
    fn last_log_entries(
        &self,
        after: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(String, LogEntry)>>> + Send;

    /// Up to `limit` audit rows after the row with this number.
    fn audit_rows(&self, after: u64, limit: usize) -> impl Future<Output = Result<Vec<AuditRow>>> + Send;

    /// See [`Backend::audit_page`](super::Backend::audit_page).
    fn audit_page(&self, query: &AuditQuery) -> impl Future<Output = Result<AuditPage>> + Send;
}

/// How a flush treats changes without a waiter that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostChanges {
    /// It fails if one was lost since the last flush that reports them.
    Report,
    Ignore,
}

/// A change that may not be on disk yet.
#[derive(Debug)]
#[must_use = "the change is on disk only after `wait`"]
pub struct PendingWrite(Option<oneshot::Receiver<Result<()>>>);

impl PendingWrite {
    /// There is nothing to wait for.
    pub const READY: Self = Self(None);

    pub const fn is_ready(&self) -> bool {
        self.0.is_none()
    }

    pub const fn new(receiver: oneshot::Receiver<Result<()>>) -> Self {
        Self(Some(receiver))
    }

    pub async fn wait(self) -> Result<()> {
        match self.0 {
            None => Ok(()),
            Some(receiver) => receiver
                .await
                .unwrap_or_else(|_| Err(Error::Unavailable("its writer has stopped".to_owned()))),
        }
    }
}

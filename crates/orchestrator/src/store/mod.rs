//! The records that outlive a call: sessions, toolsets, executions, confirmations, tasks, blocks, audit. One set of
//! rules, three back ends, one conformance suite (`tests/store.rs`) that all of them pass.
//!
//! # Rules
//!
//! - **An execution id is claimed once.** [`Backend::claim`] decides in one atomic step whether an execution may run.
//!   The same step charges the meters and uses up the approval. Nothing is spent unless the outcome is
//!   [`ClaimOutcome::New`].
//! - **Durability.** A [`Durability::Committed`] claim is on disk when `New` is returned, a committed settlement when
//!   `settle` returns. [`Durability::Relaxed`] changes reach the disk soon after: they belong to executions that may
//!   be repeated.
//! - **A claim has an owner**: the process that made it, while its lease lasts. When the owner is gone, an idempotent
//!   execution may be claimed again by any process; any other stays in doubt. A process that was paused for longer than
//!   its lease does not own its earlier claims again. What it settles counts if nobody has claimed it since.
//! - **A closed confirmation stores no secrets.** Once it is used, rejected or expired, it holds the redacted
//!   arguments.
//! - **A task has an owner**, as a claim has. When the owner is gone, one other process adopts the task. Its first end
//!   counts, and a task that has ended stores no secrets.
//! - **A toolset is stored before its first session**, and deleted when no active session has it, and it was not used
//!   for a day.
//! - **Sessions are updated by compare-and-set.** [`Backend::update_session`] succeeds only on the revision that was
//!   read.
//! - **Fail closed.** A back end that is unavailable returns an [`Error`], and the call is refused.
//! - **A gap in the audit is an entry of the audit.** Entries that could not be written are counted, and the count is
//!   written as soon as writing works again.

mod audit_entry;
mod audit_gap;
mod audit_query;
mod audit_segment;
pub mod chain;
mod conversation;
mod dispatch;
mod journal;
mod memory;
pub mod postgres;
mod rate_windows;
mod records;
mod spent;
pub mod sqlite;
mod task;

use std::sync::Arc;

use toolwright_contract::Envelope;

pub use audit_query::{
    ANY_ERROR, AuditFilter, AuditPage, AuditQuery, CALL_EVENTS, MAX_SCANNED, NumberedEntry,
};
pub use conversation::{ConversationLog, LogEntry, LogOpening};
pub use dispatch::{Backend, Store};
pub use memory::Memory;
pub use postgres::Postgres;
pub use rate_windows::{RateCharge, RateExceeded};
pub(crate) use records::PENDING_END;
pub use records::{
    ApproverRecord, ArgumentEdit, AuditEntry, AuditRow, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord,
    ConfirmationStatus, Decision, Durability, ExecutionRecord, ExecutionStatus, MinuteRecord, PendingQuery,
    PendingScope, SessionPage, SessionQuery, SessionRecord, SessionStatus, SettleOutcome, Settlement,
    SweepOutcome, ToolsetInfo, ToolsetRecord,
};
pub use spent::{Charge, MeterScope, RETRIEVAL_METER, Spent};
pub use sqlite::Sqlite;
pub use task::{TaskChange, TaskQuery, TaskRecord, TaskScope, TaskStatus};

/// Why a store operation failed. The text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// Another process serves from it.
    #[error("the store is in use: {0}")]
    InUse(String),
    #[error("the store holds a record that cannot be read: {0}")]
    Corrupt(String),
    #[error("{0} exists already")]
    Exists(String),
    #[error("there is no session {0}")]
    NoSession(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// How many executions of a session are retained, whatever their age.
pub(crate) const RETAINED_PER_SESSION: usize = 100;
/// How long every execution is retained.
pub(crate) const RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

pub type SharedEnvelope = Arc<Envelope>;

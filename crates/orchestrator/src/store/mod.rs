//! What outlives a call: sessions, executions, confirmations, blocks, audit. One set of rules, three back ends, one
//! conformance suite (`tests/store.rs`) that all of them pass.
//!
//! # Rules
//!
//! - **An execution id is claimed once.** [`Backend::claim`] decides in one atomic step whether an execution may run.
//!   The same step charges the meters and uses up the approval. Nothing is spent unless the outcome is
//!   [`ClaimOutcome::New`].
//! - **Durability.** A [`Durability::Committed`] claim is on disk when `New` is returned, a committed settlement when
//!   `settle` returns. [`Durability::Relaxed`] changes reach the disk soon after: they belong to executions that may
//!   be repeated.
//! - **A claim has an owner**: the process that made it. When the owner is gone, an idempotent execution may be
//!   claimed again by any process; any other stays in doubt.
//! - **A closed confirmation stores no secrets.** Once it is used, rejected or expired, it holds the redacted
//!   arguments.
//! - **Sessions are updated by compare-and-set.** [`Backend::update_session`] succeeds only on the revision that was
//!   read.
//! - **Fail closed.** A back end that is unavailable returns an [`Error`], and the call is refused.

pub mod chain;
mod dispatch;
mod journal;
mod memory;
mod meter;
pub mod postgres;
mod records;
pub mod sqlite;

use std::future::Future;
use std::sync::Arc;

use toolwright_contract::{Envelope, Principal};

pub use dispatch::Store;
pub use memory::Memory;
pub use meter::{Charge, MeterScope, RETRIEVAL_METER, Spent};
pub use postgres::Postgres;
pub(crate) use records::PENDING_END;
pub use records::{
    AuditEntry, AuditRow, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Decision,
    Durability, ExecutionRecord, ExecutionStatus, SessionRecord, SessionStatus, SettleOutcome, Settlement,
    SweepOutcome,
};
pub use sqlite::Sqlite;

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

/// The operations of a back end. Times are milliseconds since 1970, and always given by the caller.
pub trait Backend: Send + Sync {
    /// Stores a new session; an id that exists is [`Error::Exists`]. Committed.
    fn create_session(&self, session: SessionRecord) -> impl Future<Output = Result<()>> + Send;

    /// The current session record.
    fn session(&self, id: &str) -> impl Future<Output = Result<Option<Arc<SessionRecord>>>> + Send;

    /// Begins the next turn: counts it, resets the meters of the turn, and returns the new record. Relaxed.
    fn begin_turn(&self, id: &str) -> impl Future<Output = Result<Arc<SessionRecord>>> + Send;

    /// Replaces everything but turn and meters if the stored revision is still `session.revision`, and increments the
    /// revision. False when another update came first. Committed.
    fn update_session(&self, session: &SessionRecord) -> impl Future<Output = Result<bool>> + Send;

    /// The recorded execution with this id.
    fn execution(
        &self,
        session: &str,
        execution: &str,
    ) -> impl Future<Output = Result<Option<ExecutionRecord>>> + Send;

    /// Decides whether an execution may run. See the rules above.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<ClaimOutcome>> + Send;

    /// Records the end of a claimed execution and its audit entry in one step. The first settlement wins: a second one
    /// (from a late owner), or one without a claim, changes nothing and writes no audit entry. Until a committed
    /// settlement is on disk, the execution counts as running. When it fails, the execution counts as if its owner were
    /// gone; its owner may settle again.
    fn settle(&self, settlement: Settlement) -> impl Future<Output = Result<SettleOutcome>> + Send;

    /// Releases the claim of an idempotent execution that was cancelled: it may be claimed again. Does nothing to any
    /// other claim. Relaxed.
    fn release(&self, session: &str, execution: &str) -> impl Future<Output = Result<()>> + Send;

    /// Stores a confirmation request. If one is pending for the same session and execution, and has not expired when
    /// this one is created, that one remains with the new token (see `ConfirmationRecord::renewed`) and is returned.
    /// Committed.
    fn create_confirmation(
        &self,
        confirmation: ConfirmationRecord,
    ) -> impl Future<Output = Result<Arc<ConfirmationRecord>>> + Send;

    fn confirmation(&self, id: &str) -> impl Future<Output = Result<Option<Arc<ConfirmationRecord>>>> + Send;

    /// The pending confirmations of one session or of all, oldest first.
    fn pending_confirmations(
        &self,
        session: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Arc<ConfirmationRecord>>>> + Send;

    /// Approves or rejects a confirmation that is pending and has not expired by `now`. `None` when it is not pending
    /// or does not exist. Committed.
    fn decide_confirmation(
        &self,
        id: &str,
        decision: Decision,
        now: i64,
    ) -> impl Future<Output = Result<Option<Arc<ConfirmationRecord>>>> + Send;

    /// Approved confirmations whose execution has not been claimed: after a restart these still have to run.
    fn approved_confirmations(&self) -> impl Future<Output = Result<Vec<Arc<ConfirmationRecord>>>> + Send;

    /// Blocks a client. Of two blocks of one client the later `until` applies. Committed.
    fn block(&self, block: BlockRecord) -> impl Future<Output = Result<()>> + Send;

    /// Until when a client is blocked. The time may be past. Called with every call, so it must be cheap.
    fn blocked_until(
        &self,
        principal: &Principal,
        client_id: &str,
    ) -> impl Future<Output = Result<Option<i64>>> + Send;

    /// Removes a block. False when the client was not blocked at `now`. Committed.
    fn unblock(
        &self,
        principal: &Principal,
        client_id: &str,
        now: i64,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Appends an entry to this process's audit chain. Relaxed.
    fn append_audit(&self, entry: AuditEntry) -> impl Future<Output = Result<()>> + Send;

    /// Up to `limit` rows of all chains in the order they were written, after the row with this number.
    fn audit_rows(&self, after: u64, limit: usize) -> impl Future<Output = Result<Vec<AuditRow>>> + Send;

    /// Expires sessions (see [`SessionRecord::status_at`]), confirmations and blocks, and deletes old records. Of
    /// each session the last 100 executions and all of the last 24 hours stay, and every execution that is running or
    /// in doubt. An inactive session is deleted with its executions and confirmations 24 hours after its `expires_at`
    /// or its last execution, whichever is later. The audit is never deleted. Returns what this sweep itself has
    /// expired. Relaxed.
    fn sweep(&self, now: i64) -> impl Future<Output = Result<SweepOutcome>> + Send;

    /// Those of these sessions that are not active, or do not exist.
    fn inactive_sessions(
        &self,
        sessions: &[String],
        now: i64,
    ) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Whether an active session uses this toolset.
    fn is_toolset_in_use(&self, toolset: &str) -> impl Future<Output = Result<bool>> + Send;

    /// Waits until all relaxed changes so far are on disk.
    fn flush(&self) -> impl Future<Output = Result<()>> + Send;
}

/// How many executions of a session are retained, whatever their age.
pub(crate) const RETAINED_PER_SESSION: usize = 100;
/// How long every execution is retained.
pub(crate) const RETENTION_MS: i64 = 24 * 60 * 60 * 1000;

pub type SharedEnvelope = Arc<Envelope>;

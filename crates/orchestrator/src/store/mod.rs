//! What survives a call: sessions, executions, confirmations, audit. One set of rules, several back ends; one
//! conformance suite (`tests/store.rs`) that all of them pass.
//!
//! # The rules
//!
//! - **An id is claimed once.** [`Backend::claim`] decides, in one atomic step, what a call may do, and spends the
//!   turn's budget and the confirmation in the same step. Nothing is spent unless the answer is [`Claimed::New`].
//! - **Durable before it counts.** A claim that is [`Durability::Committed`] is on disk when `New` is answered, a
//!   settlement likewise when `settle` returns. [`Durability::Relaxed`] ones are on disk soon after: they belong to
//!   calls that may run again.
//! - **A claim has an owner**: the process that made it. When the owner is gone, an idempotent call may be claimed anew
//!   by whoever asks, and any other is in doubt for ever.
//! - **A question that is closed keeps no secrets.** Once it is used, rejected or expired, its arguments are those that
//!   may be shown.
//! - **Sessions change by comparison.** [`Backend::update_session`] succeeds only on the revision that was read.
//! - **Fail closed.** A back end that cannot answer gives an [`Error`]; the call is refused.

mod any;
pub mod chain;
mod journal;
mod memory;
pub mod postgres;
mod records;
pub mod sqlite;

use std::future::Future;
use std::sync::Arc;

use toolwright_contract::Envelope;

pub use any::Store;
pub use memory::Memory;
pub use postgres::Postgres;
pub(crate) use records::ENDING;
pub use records::{
    Answer, AuditEntry, AuditRow, Claim, Claimed, Confirmation, Decision, Durability, Principal,
    SessionRecord, SessionStanding, Settled, Settlement, Standing, Status, Swept,
};
pub use sqlite::Sqlite;

/// A store that cannot answer. The text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    /// Another process serves from it.
    #[error("the store is in use: {0}")]
    InUse(String),
    #[error("the store holds something that cannot be read: {0}")]
    Corrupt(String),
    #[error("{0} exists already")]
    Exists(String),
    #[error("there is no session {0}")]
    NoSession(String),
}

pub type Result<T> = std::result::Result<T, Error>;

/// What a back end must do. Times are milliseconds since 1970, and always the caller's.
pub trait Backend: Send + Sync {
    /// Keeps a new session; an id that is taken is [`Error::Exists`]. Committed.
    fn create_session(&self, session: SessionRecord) -> impl Future<Output = Result<()>> + Send;

    /// The session as it is now.
    fn session(&self, id: &str) -> impl Future<Output = Result<Option<Arc<SessionRecord>>>> + Send;

    /// Begins the next turn: counts it, gives it a fresh budget, and says how the session is afterwards. Relaxed.
    fn begin_turn(&self, id: &str, now: i64) -> impl Future<Output = Result<Arc<SessionRecord>>> + Send;

    /// Replaces everything but turn and budget if the stored revision is still `session.revision`, which then goes up
    /// by one. False when somebody else was faster. Committed.
    fn update_session(&self, session: &SessionRecord) -> impl Future<Output = Result<bool>> + Send;

    /// The envelope recorded for an execution of this session, whichever call it was of.
    fn recorded(
        &self,
        session: &str,
        execution: &str,
    ) -> impl Future<Output = Result<Option<Standing>>> + Send;

    /// Decides what a call may do. See the rules above.
    fn claim(&self, claim: Claim) -> impl Future<Output = Result<Claimed>> + Send;

    /// Records what came of a claimed call, and its audit entry, in one step. The first settlement stands: a second one
    /// (a late owner) is told it, and one of a call that was never claimed that; neither changes anything or leaves an
    /// audit entry. Until a committed settlement is on disk, others are told that the call still runs. When it fails,
    /// the call is as if its owner were gone; its owner may settle it again.
    fn settle(&self, settlement: Settlement) -> impl Future<Output = Result<Settled>> + Send;

    /// Gives up the claim of an idempotent call that was cancelled before it came to an end: it may be claimed anew. Does
    /// nothing to any other claim. Relaxed.
    fn release(&self, session: &str, execution: &str) -> impl Future<Output = Result<()>> + Send;

    /// Keeps a question to a person. When one with the same session and execution waits already (and has not expired
    /// when this one is made), that one stands with the new token (see `Confirmation::renewed`) and is returned.
    /// Committed.
    fn ask(&self, confirmation: Confirmation) -> impl Future<Output = Result<Arc<Confirmation>>> + Send;

    /// The question with this id.
    fn confirmation(&self, id: &str) -> impl Future<Output = Result<Option<Arc<Confirmation>>>> + Send;

    /// The questions that wait for an answer, oldest first; of one session, or of all.
    fn pending(&self, session: Option<&str>) -> impl Future<Output = Result<Vec<Arc<Confirmation>>>> + Send;

    /// Answers a question that still waits and has not expired by `now`; afterwards it does not wait any more.
    /// `None` when it does not wait (any more) or does not exist. Committed.
    fn decide(
        &self,
        id: &str,
        decision: Decision,
        now: i64,
    ) -> impl Future<Output = Result<Option<Arc<Confirmation>>>> + Send;

    /// Confirmations that were approved, but whose call has not been claimed: after a restart they still have to run.
    fn approved(&self) -> impl Future<Output = Result<Vec<Arc<Confirmation>>>> + Send;

    /// Adds an entry to this process's chain. Relaxed.
    fn append(&self, entry: AuditEntry) -> impl Future<Output = Result<()>> + Send;

    /// Up to `limit` rows of all chains, in the order they were written, after the row with this number.
    fn audit(&self, after: u64, limit: usize) -> impl Future<Output = Result<Vec<AuditRow>>> + Send;

    /// Marks sessions whose time has come as [`SessionRecord::standing_at`] says and questions as expired, and forgets
    /// executions beyond what is promised: the last 100 of each session, and all of the last 24 hours. What runs or is
    /// in doubt is not forgotten. A session that does not go on is forgotten 24 hours after its `expires_at` and its
    /// last execution, whichever is later, with its executions and questions; never the audit. Says what this sweep, and
    /// no other, has ended. Relaxed.
    fn sweep(&self, now: i64) -> impl Future<Output = Result<Swept>> + Send;

    /// Those of these sessions that do not go on, or do not exist.
    fn over(&self, sessions: &[String], now: i64) -> impl Future<Output = Result<Vec<String>>> + Send;

    /// Whether any session that goes on keeps this toolset.
    fn is_kept(&self, toolset: &str) -> impl Future<Output = Result<bool>> + Send;

    /// Waits until everything that was relaxed so far is on disk.
    fn flush(&self) -> impl Future<Output = Result<()>> + Send;
}

/// How many executions of a session are kept, whatever their age.
pub(crate) const KEPT_PER_SESSION: usize = 100;
/// How long every execution is kept.
pub(crate) const KEPT_FOR_MS: i64 = 24 * 60 * 60 * 1000;

/// An envelope that several may hold.
pub type SharedEnvelope = Arc<Envelope>;

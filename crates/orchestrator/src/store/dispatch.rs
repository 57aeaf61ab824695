//! The operations of a store, and all back ends behind one type.

use std::future::Future;
use std::sync::Arc;

use toolwright_contract::Principal;

use super::{
    AuditEntry, AuditRow, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord, Decision, ExecutionRecord,
    Memory, Postgres, Result, SessionRecord, SettleOutcome, Settlement, Sqlite, SweepOutcome,
};

/// A store of any kind.
#[derive(Debug)]
pub enum Store {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Postgres),
}

/// Declares the trait, and implements it for [`Store`].
macro_rules! operations {
    ($($(#[$doc:meta])* async fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $output:ty;)*) => {
        /// The operations of a back end. Times are milliseconds since 1970, and always given by the caller.
        pub trait Backend: Send + Sync {
            $($(#[$doc])* fn $name(&self $(, $argument: $type)*) -> impl Future<Output = $output> + Send;)*
        }

        impl Backend for Store {
            $(async fn $name(&self $(, $argument: $type)*) -> $output {
                match self {
                    Self::Memory(store) => store.$name($($argument),*).await,
                    Self::Sqlite(store) => store.$name($($argument),*).await,
                    // Boxed to keep the futures of callers small: this one is large, and waits for a network anyway.
                    Self::Postgres(store) => Box::pin(store.$name($($argument),*)).await,
                }
            })*
        }
    };
}

operations! {
    /// Stores a new session; an id that exists is [`Error::Exists`](super::Error::Exists). Committed.
    async fn create_session(&self, session: SessionRecord) -> Result<()>;

    /// The current session record.
    async fn session(&self, id: &str) -> Result<Option<Arc<SessionRecord>>>;

    /// Begins the next turn: counts it, resets the meters of the turn, and returns the new record. Relaxed.
    async fn begin_turn(&self, id: &str) -> Result<Arc<SessionRecord>>;

    /// Replaces everything but turn and meters if the stored revision is still `session.revision`, and increments the
    /// revision. False when another update came first. Committed.
    async fn update_session(&self, session: &SessionRecord) -> Result<bool>;

    /// The recorded execution with this id.
    async fn execution(&self, session: &str, execution: &str) -> Result<Option<ExecutionRecord>>;

    /// Decides whether an execution may run. See the rules of [`store`](super).
    async fn claim(&self, claim: Claim) -> Result<ClaimOutcome>;

    /// Records the end of a claimed execution and its audit entry in one step. The first settlement wins: a second one
    /// (from a late owner), or one without a claim, changes nothing and writes no audit entry. Until a committed
    /// settlement is on disk, the execution counts as running. When it fails, the execution counts as if its owner were
    /// gone; its owner may settle again.
    async fn settle(&self, settlement: Settlement) -> Result<SettleOutcome>;

    /// Releases the claim of an idempotent execution that was cancelled: it may be claimed again. Does nothing to any
    /// other claim. Relaxed.
    async fn release(&self, session: &str, execution: &str) -> Result<()>;

    /// Stores a confirmation request. If one is pending for the same session and execution, and has not expired when
    /// this one is created, that one remains with the new token (see `ConfirmationRecord::renewed`) and is returned.
    /// Committed.
    async fn create_confirmation(&self, confirmation: ConfirmationRecord) -> Result<Arc<ConfirmationRecord>>;

    async fn confirmation(&self, id: &str) -> Result<Option<Arc<ConfirmationRecord>>>;

    /// The pending confirmations of one session or of all, oldest first.
    async fn pending_confirmations(&self, session: Option<&str>) -> Result<Vec<Arc<ConfirmationRecord>>>;

    /// Approves or rejects a confirmation that is pending and has not expired by `now`. `None` when it is not pending
    /// or does not exist. Committed.
    async fn decide_confirmation(
        &self, id: &str, decision: Decision, now: i64
    ) -> Result<Option<Arc<ConfirmationRecord>>>;

    /// Approved confirmations whose execution has not been claimed: after a restart these still have to run.
    async fn approved_confirmations(&self) -> Result<Vec<Arc<ConfirmationRecord>>>;

    /// Blocks a client. Of two blocks of one client the later `until` applies. Committed.
    async fn block(&self, block: BlockRecord) -> Result<()>;

    /// Until when a client is blocked. The time may be past. Called with every call, so it must be cheap.
    async fn blocked_until(&self, principal: &Principal, client_id: &str) -> Result<Option<i64>>;

    /// Removes a block. False when the client was not blocked at `now`. Committed.
    async fn unblock(&self, principal: &Principal, client_id: &str, now: i64) -> Result<bool>;

    /// Appends an entry to this process's audit chain. Relaxed.
    async fn append_audit(&self, entry: AuditEntry) -> Result<()>;

    /// Up to `limit` rows of all chains in the order they were written, after the row with this number.
    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>>;

    /// Expires sessions (see [`SessionRecord::status_at`]), confirmations and blocks, and deletes old records. Of
    /// each session the last 100 executions and all of the last 24 hours stay, and every execution that is running or
    /// in doubt. An inactive session is deleted with its executions and confirmations 24 hours after its `expires_at`
    /// or its last execution, whichever is later. The audit is never deleted. Returns what this sweep itself has
    /// expired. Relaxed.
    async fn sweep(&self, now: i64) -> Result<SweepOutcome>;

    /// Those of these sessions that are not active, or do not exist.
    async fn inactive_sessions(&self, sessions: &[String], now: i64) -> Result<Vec<String>>;

    /// Whether an active session uses this toolset.
    async fn is_toolset_in_use(&self, toolset: &str) -> Result<bool>;

    /// Waits until all relaxed changes so far are on disk.
    async fn flush(&self) -> Result<()>;
}

//! The operations of a store, and all back ends behind one type.

use std::future::Future;
use std::sync::Arc;

use toolwright_contract::Principal;

use super::{
    AuditEntry, AuditPage, AuditQuery, AuditRow, BlockRecord, Claim, ClaimOutcome, ConfirmationRecord,
    Decision, Durability, ExecutionRecord, Memory, MinuteRecord, PendingQuery, Postgres, RateCharge,
    RateExceeded, Result, SessionPage, SessionQuery, SessionRecord, SettleOutcome, Settlement, Sqlite,
    SweepOutcome, TaskChange, TaskQuery, TaskRecord, ToolsetInfo, ToolsetRecord,
};

/// A store of any kind.
#[derive(Debug)]
pub enum Store {
    Memory(Memory),
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl Store {
    /// Writes everything and closes the store, for a clean stop. A SQLite file is complete without its log after that.
    /// Later calls fail. Blocks while it writes.
    pub async fn close(&self) {
        match self {
            Self::Memory(_) => {}
            Self::Sqlite(store) => store.close(),
            Self::Postgres(store) => store.close().await,
        }
    }

    /// The number of the lease that the claims of this process belong to. Where one process uses the store at a time,
    /// it has no end.
    pub fn lease(&self) -> u64 {
        match self {
            Self::Memory(_) | Self::Sqlite(_) => 0,
            Self::Postgres(store) => store.lease(),
        }
    }

    /// Whether the lease with this number has not expired: no other process takes over a claim of it.
    pub async fn holds_lease(&self, lease: u64) -> bool {
        match self {
            Self::Memory(_) | Self::Sqlite(_) => true,
            Self::Postgres(store) => Box::pin(store.holds_lease(lease)).await,
        }
    }

    /// Takes back a claim whose lease has expired before its handler started, with all that it has spent. Does nothing
    /// if another process has taken it over.
    pub async fn take_back(&self, claim: &Claim) -> Result<()> {
        match self {
            // Their claims have no lease that expires.
            Self::Memory(_) | Self::Sqlite(_) => Ok(()),
            Self::Postgres(store) => Box::pin(store.take_back(claim)).await,
        }
    }

    /// The rows of the register of audit chains; `None` where one process writes at a time, and there is none. It must
    /// be read before the audit, which may get new chains meanwhile.
    pub async fn audit_register(&self) -> Result<Option<Vec<AuditRow>>> {
        match self {
            Self::Memory(_) | Self::Sqlite(_) => Ok(None),
            Self::Postgres(store) => Box::pin(store.audit_register()).await.map(Some),
        }
    }
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
                tracing::trace!(operation = stringify!($name), "store");
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
    /// Stores a new session; an id that exists is [`Error::Exists`](super::Error::Exists). A relaxed one is on disk
    /// with the first committed change of the session, which fails if it could not be written.
    async fn create_session(&self, session: SessionRecord, durability: Durability) -> Result<()>;

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

    /// Counts a call that is not claimed for these rate limits, unless one of them is used up: then it counts for none.
    async fn spend_rates(&self, rates: &[RateCharge], now: i64) -> Result<Option<RateExceeded>>;

    /// Records the end of a claimed execution and its audit entry in one step. The first settlement wins: a second one,
    /// one without a claim, or one of a late owner after another process has claimed the execution, changes nothing and
    /// writes no audit entry. Until a committed
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

    /// A page of the pending confirmations, oldest first.
    async fn pending_confirmations(&self, query: PendingQuery<'_>) -> Result<Vec<Arc<ConfirmationRecord>>>;

    /// How many confirmations of a principal are pending and have not expired by `now`, counted up to `limit`.
    async fn count_pending(&self, principal: &str, now: i64, limit: usize) -> Result<usize>;

    /// The ids of these confirmations that are not pending at `now`, or do not exist.
    async fn closed_confirmations(&self, ids: &[String], now: i64) -> Result<Vec<String>>;

    /// Approves or rejects a confirmation that is pending and has not expired by `now`. `None` when it is not pending
    /// or does not exist. Committed.
    async fn decide_confirmation(
        &self, id: &str, decision: Decision, now: i64
    ) -> Result<Option<Arc<ConfirmationRecord>>>;

    /// Takes back an approval whose execution has not been claimed: the confirmation counts as expired. False when it
    /// is not approved, or was used. Committed.
    async fn withdraw_approval(&self, id: &str) -> Result<bool>;

    /// Approved confirmations whose execution has not been claimed: after a restart these still have to run.
    async fn approved_confirmations(&self) -> Result<Vec<Arc<ConfirmationRecord>>>;

    /// Stores a task, which this process owns. One with the same id stays as it is, and is returned. Committed.
    async fn create_task(&self, task: TaskRecord) -> Result<Arc<TaskRecord>>;

    async fn task(&self, id: &str) -> Result<Option<Arc<TaskRecord>>>;

    /// A page of the tasks, newest first.
    async fn task_page(&self, query: TaskQuery<'_>) -> Result<Vec<Arc<TaskRecord>>>;

    /// Changes a task that has not ended, and returns the new record; `None` if it has ended or does not exist, or if
    /// another process has adopted it: that one may only be asked to cancel it.
    /// Committed, except for progress.
    async fn change_task(&self, id: &str, change: TaskChange, now: i64) -> Result<Option<Arc<TaskRecord>>>;

    /// Takes over tasks that have not ended and whose owner is gone, at most `limit`, oldest first. Of several
    /// processes one gets each task.
    async fn adopt_tasks(&self, limit: usize) -> Result<Vec<Arc<TaskRecord>>>;

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

    /// A page of the audit's entries, newest first. Entries of other processes that are not committed yet may be
    /// missing.
    async fn audit_page(&self, query: &AuditQuery) -> Result<AuditPage>;

    /// A page of the sessions, newest first.
    async fn session_page(&self, query: SessionQuery<'_>) -> Result<SessionPage>;

    /// Expires sessions (see [`SessionRecord::status_at`]), confirmations and blocks, and deletes old records. A task
    /// that has ended stays for 24 hours. Each session keeps its last 100 executions, those of the last 24 hours, and
    /// all that are running or in doubt. An inactive session is deleted with its executions, tasks and confirmations 24
    /// hours after its `expires_at` or its last execution, whichever is later. The audit is never deleted. Returns what
    /// this sweep itself has expired. Relaxed.
    async fn sweep(&self, now: i64) -> Result<SweepOutcome>;

    /// The ids of these sessions that are not active, or do not exist.
    async fn inactive_sessions(&self, sessions: &[String], now: i64) -> Result<Vec<String>>;

    /// Whether an active session uses this toolset.
    async fn is_toolset_in_use(&self, toolset: &str) -> Result<bool>;

    /// Stores a toolset. One that is stored already stays as it is, and counts as used at `used_at`. Committed.
    async fn put_toolset(&self, toolset: ToolsetRecord) -> Result<()>;

    /// Records that a toolset is used at `now`. False when it is not stored. Relaxed.
    async fn touch_toolset(&self, id: &str, now: i64) -> Result<bool>;

    /// A stored toolset with its content.
    async fn toolset(&self, id: &str) -> Result<Option<ToolsetRecord>>;

    /// All stored toolsets, and how many active sessions each has; the one that was used last comes first.
    async fn toolsets(&self) -> Result<Vec<(ToolsetInfo, u64)>>;

    /// Deletes the toolsets that no active session has, and that were last used at `used_before` or earlier. Returns
    /// their ids in order. [`Self::sweep`] does the same to those that were not used for a day. Committed.
    async fn delete_unused_toolsets(&self, used_before: i64) -> Result<Vec<String>>;

    /// Stores the numbers of a minute, in place of those that its process has stored before. Those of minutes more than
    /// a day before it are deleted. Relaxed.
    async fn put_minute(&self, minute: MinuteRecord) -> Result<()>;

    /// The numbers of all processes from this time on, oldest first.
    async fn minutes(&self, from: i64) -> Result<Vec<MinuteRecord>>;

    /// Waits until all relaxed changes so far are on disk.
    async fn flush(&self) -> Result<()>;

    /// Writes to the disk without changing a record, to learn whether that is possible.
    async fn test_write(&self) -> Result<()>;
}

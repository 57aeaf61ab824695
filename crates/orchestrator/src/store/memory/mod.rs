//! The store in memory. With a journal it makes the decisions of a back end that stores its records on disk. Sessions
//! are sharded, so that calls of different sessions do not wait for one another. A change is made and journaled under
//! one lock, and waited for after the lock is released.

mod claim;
mod confirmations;
mod conversations;
mod envelope_cache;
mod evicted;
mod memory_backend;
mod session_entry;
mod session_list;
mod sweep;
mod task_table;
mod toolset_table;
mod volatile_journal;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use confirmations::Confirmations;
use conversations::OpenLog;
use envelope_cache::{CachedEnvelope, EnvelopeCache};
use evicted::EvictedExecution;
use foldhash::fast::RandomState;
use session_entry::SessionEntry;
pub(super) use session_entry::{Execution, ExecutionStage};
use task_table::TaskTable;
use volatile_journal::VolatileJournal;

use super::Result;
use super::journal::Journal;
use super::rate_windows::RateWindows;
use super::records::{
    BlockRecord, ConfirmationRecord, ExecutionRecord, ExecutionStatus, SessionRecord, ToolsetInfo,
};
use super::task::TaskRecord;

const SHARDS: usize = 64;

/// A store in memory, with a journal on disk or without one.
pub struct Memory<J = VolatileJournal> {
    shards: Vec<Mutex<Shard>>,
    /// All sessions, by creation time and id. Locked after a shard, never before it.
    sessions_by_age: Mutex<BTreeSet<(i64, String)>>,
    hasher: RandomState,
    confirmations: Mutex<Confirmations>,
    blocks: Mutex<Blocks>,
    toolsets: Mutex<ToolsetTable>,
    tasks: Mutex<TaskTable>,
    rates: Mutex<RateWindows>,
    /// The conversation logs that have a writer, by session.
    open_logs: Mutex<HashMap<String, OpenLog>>,
    /// `None`: all envelopes stay in memory.
    envelope_cache: Option<Mutex<EnvelopeCache>>,
    next_execution: AtomicU64,
    journal: J,
}

type Shard = HashMap<String, SessionEntry, RandomState>;
/// Until when a client is blocked, by org, principal and client.
type Blocks = HashMap<(String, String, String), i64>;
/// Stored toolsets, by id.
type ToolsetTable = BTreeMap<String, ToolsetInfo>;

impl<J> fmt::Debug for Memory<J> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_journal(VolatileJournal::default(), None)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J: Journal> Memory<J> {
    /// `cache_bytes` is how many bytes of envelopes stay in memory; the others are read from the journal.
    pub(super) fn with_journal(journal: J, cache_bytes: Option<usize>) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            sessions_by_age: Mutex::default(),
            hasher: RandomState::default(),
            confirmations: Mutex::default(),
            blocks: Mutex::default(),
            toolsets: Mutex::default(),
            tasks: Mutex::default(),
            rates: Mutex::default(),
            open_logs: Mutex::default(),
            envelope_cache: cache_bytes.map(|bytes| Mutex::new(EnvelopeCache::new(bytes))),
            next_execution: AtomicU64::new(1),
            journal,
        }
    }

    fn shard(&self, session: &str) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.hasher.hash_one(session) as usize % SHARDS])
    }

    pub(super) const fn journal(&self) -> &J {
        &self.journal
    }

    fn confirmations(&self) -> MutexGuard<'_, Confirmations> {
        lock(&self.confirmations)
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        lock(&self.blocks)
    }

    /// Calls `act` with an execution that is in memory.
    fn with_execution<T>(
        &self,
        session: &str,
        execution: &str,
        act: impl FnOnce(&mut Execution) -> T,
    ) -> Option<T> {
        self.shard(session).get_mut(session)?.executions.get_mut(execution).map(act)
    }

    /// Reads an execution that is on disk only.
    async fn read_evicted(
        &self,
        session: &str,
        execution: &str,
        evicted: EvictedExecution,
    ) -> Result<Option<ExecutionRecord>> {
        let record = self.journal.execution(evicted.number, session, execution).await?;
        let is_settled = |record: &ExecutionRecord| matches!(record.status, ExecutionStatus::Finished(_));
        if !record.as_ref().is_some_and(is_settled)
            && let Some(entry) = self.shard(session).get_mut(session)
        {
            // Its relaxed settlement was lost on the way to the disk.
            entry.remove_evicted(execution, evicted, record.as_ref());
        }
        Ok(record)
    }

    /// Counts an envelope that is in memory, and evicts the oldest ones beyond the limit.
    fn cache_envelope(&self, session: &str, execution: &str, bytes: usize) {
        let Some(cache) = &self.envelope_cache else { return };
        let envelope = CachedEnvelope { session: session.into(), execution: execution.into(), bytes };
        let evicted = lock(cache).insert(envelope);
        for evicted in evicted {
            if let Some(entry) = self.shard(&evicted.session).get_mut(&*evicted.session) {
                entry.evict(&evicted.execution);
            }
        }
    }
}

/// Loads what a back end has read from disk when it is opened.
impl<J: Journal> Memory<J> {
    pub(super) fn load_session(&self, record: SessionRecord) {
        let id = record.id.clone();
        lock(&self.sessions_by_age).insert((record.created_at, id.clone()));
        self.shard(&id).insert(id.clone(), SessionEntry::new(Arc::new(record)));
    }

    /// Executions come in the order of their numbers, after the sessions. The owner of an unsettled one is gone.
    pub(super) fn load_execution(&self, session: &str, id: &str, execution: Execution, is_settled: bool) {
        self.next_execution.fetch_max(execution.number + 1, Ordering::Relaxed);
        let mut shard = self.shard(session);
        let Some(entry) = shard.get_mut(session) else { return };
        if is_settled {
            entry.insert_evicted(id, execution.number, execution.claimed_at);
        } else {
            entry.insert(&id.into(), execution);
        }
    }

    /// Confirmations come after the sessions.
    pub(super) fn load_confirmation(&self, mut confirmation: ConfirmationRecord) {
        if confirmation.principal.is_empty()
            && let Some(entry) = self.shard(&confirmation.session).get(&confirmation.session)
        {
            confirmation.principal = entry.record.principal.key();
        }
        self.confirmations().insert(Arc::new(confirmation));
    }

    pub(super) fn load_block(&self, BlockRecord { org, principal, client_id, until }: BlockRecord) {
        self.blocks().insert((org, principal, client_id), until);
    }

    /// The owner of a task that has not ended is gone.
    pub(super) fn load_task(&self, task: TaskRecord) {
        lock(&self.tasks).insert(Arc::new(task), false);
    }

    pub(super) fn load_toolset(&self, toolset: ToolsetInfo) {
        lock(&self.toolsets).insert(toolset.id.clone(), toolset);
    }
}

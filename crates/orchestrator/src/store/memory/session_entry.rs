//! One session in memory: its record and its executions.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::evicted::{EvictedExecution, EvictedExecutions, id_hash};
use crate::store::records::{ClaimOutcome, ExecutionRecord, ExecutionStatus, SessionRecord, SessionStatus};
use crate::store::{RETAINED_PER_SESSION, RETENTION_MS, SharedEnvelope};

pub struct SessionEntry {
    pub record: Arc<SessionRecord>,
    /// Executions in memory.
    pub executions: HashMap<Arc<str>, Execution, RandomState>,
    /// Executions on disk only.
    pub evicted: EvictedExecutions,
    /// The position of the last entry of its conversation log, if all entries are on disk and it is known.
    pub log_end: Option<u64>,
    /// No execution was claimed before this time.
    oldest_claimed_at: i64,
}

pub struct Execution {
    /// Its number in the journal, in the order of claims.
    pub number: u64,
    pub claimed_at: i64,
    pub digest: [u8; 32],
    pub idempotent: bool,
    /// See [`ExecutionRecord::args`].
    pub args: Option<Arc<str>>,
    pub stage: ExecutionStage,
}

pub enum ExecutionStage {
    Running,
    /// Its owner is gone.
    Orphaned,
    /// Its settlement is on the way to the disk.
    Settling(SharedEnvelope),
    Finished(SharedEnvelope),
}

impl Execution {
    /// The outcome of another claim with this digest.
    pub fn claim_outcome(&self, digest: &[u8; 32]) -> ClaimOutcome {
        match self.status() {
            _ if self.digest != *digest => ClaimOutcome::Conflict,
            ExecutionStatus::Running => ClaimOutcome::Running,
            ExecutionStatus::Finished(envelope) => ClaimOutcome::Finished(envelope),
            ExecutionStatus::Abandoned => ClaimOutcome::New,
            ExecutionStatus::InDoubt => ClaimOutcome::InDoubt,
        }
    }

    pub fn record(&self) -> ExecutionRecord {
        ExecutionRecord { digest: self.digest, args: self.args.clone(), status: self.status() }
    }

    fn status(&self) -> ExecutionStatus {
        match &self.stage {
            ExecutionStage::Running | ExecutionStage::Settling(_) => ExecutionStatus::Running,
            ExecutionStage::Finished(envelope) => ExecutionStatus::Finished(Arc::clone(envelope)),
            ExecutionStage::Orphaned if self.idempotent => ExecutionStatus::Abandoned,
            ExecutionStage::Orphaned => ExecutionStatus::InDoubt,
        }
    }

    pub const fn is_unsettled(&self) -> bool {
        matches!(self.stage, ExecutionStage::Running | ExecutionStage::Orphaned)
    }

    /// Executions that are running or in doubt are retained whatever their age.
    const fn may_be_deleted(&self) -> bool {
        match self.stage {
            ExecutionStage::Running | ExecutionStage::Settling(_) => false,
            ExecutionStage::Orphaned => self.idempotent,
            ExecutionStage::Finished(_) => true,
        }
    }
}

impl SessionEntry {
    pub fn new(record: Arc<SessionRecord>) -> Self {
        Self {
            record,
            executions: HashMap::default(),
            evicted: EvictedExecutions::new(),
            log_end: None,
            oldest_claimed_at: i64::MAX,
        }
    }

    pub fn insert(&mut self, id: &Arc<str>, execution: Execution) {
        self.oldest_claimed_at = self.oldest_claimed_at.min(execution.claimed_at);
        self.executions.insert(Arc::clone(id), execution);
    }

    pub fn insert_evicted(&mut self, id: &str, number: u64, claimed_at: i64) {
        self.oldest_claimed_at = self.oldest_claimed_at.min(claimed_at);
        self.evicted.insert(id_hash(id), EvictedExecution::new(number, claimed_at));
    }

    /// Drops the envelope of a finished execution from memory.
    pub fn evict(&mut self, id: &str) {
        if self.executions.get(id).is_some_and(|known| matches!(known.stage, ExecutionStage::Finished(_)))
            && let Some(known) = self.executions.remove(id)
        {
            self.insert_evicted(id, known.number, known.claimed_at);
        }
    }

    /// Corrects an evicted execution whose settlement is not on disk: replaces the entry by the orphaned execution of
    /// this record, or removes it if there is none.
    pub fn remove_evicted(&mut self, id: &str, evicted: EvictedExecution, stored: Option<&ExecutionRecord>) {
        let hash = id_hash(id);
        // Another caller has already replaced the entry, and may have claimed the execution.
        if self.evicted.get(&hash) != Some(&evicted) {
            return;
        }
        self.evicted.remove(&hash);
        if let Some(ExecutionRecord { digest, args, status }) = stored {
            let execution = Execution {
                number: evicted.number,
                claimed_at: evicted.claimed_at(),
                digest: *digest,
                idempotent: *status == ExecutionStatus::Abandoned,
                args: args.clone(),
                stage: ExecutionStage::Orphaned,
            };
            self.executions.insert(id.into(), execution);
        }
    }

    /// The numbers of all executions.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let evicted = self.evicted.values().map(|entry| entry.number);
        self.executions.values().map(|known| known.number).chain(evicted)
    }

    /// Drops the executions that are beyond the retention, and returns their numbers.
    pub fn remove_old(&mut self, now: i64) -> Vec<u64> {
        let surplus = (self.executions.len() + self.evicted.len()).saturating_sub(RETAINED_PER_SESSION);
        let is_old = |at: i64| now.saturating_sub(at) >= RETENTION_MS;
        if surplus == 0 || !is_old(self.oldest_claimed_at) {
            return Vec::new();
        }
        let mut numbers: Vec<u64> = self.numbers().collect();
        let (_, first_retained, _) = numbers.select_nth_unstable(surplus);
        let first_retained = *first_retained;
        let is_surplus = |number: u64, at: i64| number < first_retained && is_old(at);
        let known = self
            .executions
            .extract_if(|_, known| is_surplus(known.number, known.claimed_at) && known.may_be_deleted());
        let mut removed: Vec<u64> = known.map(|(_, known)| known.number).collect();
        let evicted = self.evicted.extract_if(.., |_, entry| is_surplus(entry.number, entry.claimed_at()));
        removed.extend(evicted.map(|(_, entry)| entry.number));
        let evicted = self.evicted.values().map(EvictedExecution::claimed_at);
        let all = self.executions.values().map(|known| known.claimed_at).chain(evicted);
        self.oldest_claimed_at = all.min().unwrap_or(i64::MAX);
        removed
    }

    /// Whether the session and all of its executions are beyond the retention.
    pub fn is_old(&self, now: i64) -> bool {
        let is_past = |at: i64| now.saturating_sub(at) >= RETENTION_MS;
        let is_over = |known: &Execution| {
            is_past(known.claimed_at)
                && !matches!(known.stage, ExecutionStage::Running | ExecutionStage::Settling(_))
        };
        self.record.status != SessionStatus::Active
            && is_past(self.record.expires_at)
            && self.executions.values().all(is_over)
            && self.evicted.values().all(|entry| is_past(entry.claimed_at()))
    }
}

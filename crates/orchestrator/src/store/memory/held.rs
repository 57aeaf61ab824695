//! One session in memory: its record, its budget, its executions.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::stored::{self, Stored};
use crate::store::records::{Claim, Claimed, SessionRecord, SessionStanding, Standing, Status};
use crate::store::{KEPT_FOR_MS, KEPT_PER_SESSION, SharedEnvelope};

pub struct Held {
    pub record: Arc<SessionRecord>,
    /// Retrieval calls of this turn; the record's number may lag behind.
    pub retrievals: u32,
    /// Those that are not on disk alone.
    pub executions: HashMap<Arc<str>, Execution, RandomState>,
    pub stored: Stored,
    /// No execution was made before.
    oldest_at: i64,
}

pub struct Execution {
    /// Its number in the journal. Later ones have larger numbers.
    pub number: u64,
    pub at: i64,
    pub digest: [u8; 32],
    pub idempotent: bool,
    pub stage: Stage,
}

pub enum Stage {
    Running,
    /// Its owner is gone.
    Orphaned,
    /// It has come to an end, which is on its way to the disk.
    Settling(SharedEnvelope),
    Finished(SharedEnvelope),
}

impl Execution {
    pub const fn new(number: u64, claim: &Claim, stage: Stage) -> Self {
        Self { number, at: claim.now, digest: claim.digest, idempotent: claim.idempotent, stage }
    }

    /// What a claim with this digest is told.
    pub fn answer(&self, digest: &[u8; 32]) -> Claimed {
        match &self.stage {
            _ if self.digest != *digest => Claimed::Conflict,
            Stage::Running | Stage::Settling(_) => Claimed::Running,
            Stage::Finished(envelope) => Claimed::Finished(Arc::clone(envelope)),
            Stage::Orphaned if self.idempotent => Claimed::New,
            Stage::Orphaned => Claimed::InDoubt,
        }
    }

    pub fn standing(&self) -> Standing {
        let status = match &self.stage {
            Stage::Running | Stage::Settling(_) => Status::Running,
            Stage::Finished(envelope) => Status::Finished(Arc::clone(envelope)),
            Stage::Orphaned if self.idempotent => Status::Abandoned,
            Stage::Orphaned => Status::InDoubt,
        };
        Standing { digest: self.digest, status }
    }

    pub const fn is_unsettled(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Orphaned)
    }

    /// What runs and what is in doubt is kept whatever its age.
    const fn must_stay(&self) -> bool {
        match self.stage {
            Stage::Running | Stage::Settling(_) => true,
            Stage::Orphaned => !self.idempotent,
            Stage::Finished(_) => false,
        }
    }
}

impl Held {
    pub fn new(record: Arc<SessionRecord>) -> Self {
        let retrievals = record.retrievals;
        let (executions, stored) = (HashMap::default(), Stored::default());
        Self { record, retrievals, executions, stored, oldest_at: i64::MAX }
    }

    /// Adds an execution, or replaces what was known of it.
    pub fn keep(&mut self, id: &Arc<str>, execution: Execution) {
        self.oldest_at = self.oldest_at.min(execution.at);
        self.executions.insert(Arc::clone(id), execution);
    }

    /// Adds an execution that is on disk alone.
    pub fn keep_stored(&mut self, id: &str, number: u64, at: i64) {
        self.oldest_at = self.oldest_at.min(at);
        self.stored.insert(id, number, at);
    }

    /// From now on the envelope of a finished execution is on disk alone.
    pub fn let_go(&mut self, id: &str) {
        if self.executions.get(id).is_some_and(|known| matches!(known.stage, Stage::Finished(_)))
            && let Some(known) = self.executions.remove(id)
        {
            self.stored.insert(id, known.number, known.at);
        }
    }

    /// A call that was taken to be on disk has not got there as it was: it is as if its owner were gone.
    pub fn orphan(&mut self, id: &str, call: stored::Call, digest: [u8; 32], idempotent: bool) {
        // Otherwise somebody else has noticed, and perhaps claimed it.
        if self.stored.remove(call) {
            let (number, at, stage) = (call.number, call.at(), Stage::Orphaned);
            self.executions.insert(id.into(), Execution { number, at, digest, idempotent, stage });
        }
    }

    /// As if it had never been.
    pub fn remove(&mut self, id: &str) {
        self.executions.remove(id);
    }

    /// The record with the budget as it is now.
    pub fn current(&mut self) -> Arc<SessionRecord> {
        if self.record.retrievals != self.retrievals {
            Arc::make_mut(&mut self.record).retrievals = self.retrievals;
        }
        Arc::clone(&self.record)
    }

    /// The numbers of all executions.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.executions.values().map(|known| known.number).chain(self.stored.iter().map(|call| call.number))
    }

    /// Drops the executions that need not be kept, and gives their numbers.
    pub fn forget(&mut self, now: i64) -> Vec<u64> {
        let surplus = (self.executions.len() + self.stored.len()).saturating_sub(KEPT_PER_SESSION);
        let is_old = |at: i64| now.saturating_sub(at) >= KEPT_FOR_MS;
        if surplus == 0 || !is_old(self.oldest_at) {
            return Vec::new();
        }
        let mut numbers: Vec<u64> = self.numbers().collect();
        // The first of those that are kept whatever their age.
        let (_, kept, _) = numbers.select_nth_unstable(surplus);
        let kept = *kept;
        let mut forgotten = Vec::new();
        self.executions.retain(|_, known| {
            let goes = known.number < kept && is_old(known.at) && !known.must_stay();
            forgotten.extend(goes.then_some(known.number));
            !goes
        });
        self.stored.retain(|call| {
            let goes = call.number < kept && is_old(call.at());
            forgotten.extend(goes.then_some(call.number));
            !goes
        });
        let stored = self.stored.iter().map(stored::Call::at);
        let all = self.executions.values().map(|known| known.at).chain(stored);
        self.oldest_at = all.min().unwrap_or(i64::MAX);
        forgotten
    }

    /// Whether nothing of this session need be kept any more.
    pub fn is_gone(&self, now: i64) -> bool {
        let is_past = |at: i64| now.saturating_sub(at) >= KEPT_FOR_MS;
        let is_over = |known: &Execution| {
            is_past(known.at) && !matches!(known.stage, Stage::Running | Stage::Settling(_))
        };
        self.record.standing != SessionStanding::Active
            && is_past(self.record.expires_at)
            && self.executions.values().all(is_over)
            && self.stored.iter().all(|call| is_past(call.at()))
    }
}

//! One session in memory: its record, its budget, its executions.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::store::records::{Claim, Claimed, SessionRecord, SessionStanding, Status};
use crate::store::{KEPT_FOR_MS, KEPT_PER_SESSION, SharedEnvelope};

pub struct Held {
    pub record: Arc<SessionRecord>,
    /// Retrieval calls of this turn; the record's number may lag behind.
    pub retrievals: u32,
    pub executions: HashMap<Arc<str>, Execution, RandomState>,
    /// The executions, oldest first.
    order: VecDeque<Arc<str>>,
}

pub struct Execution {
    /// Its number in the journal.
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
    /// Finished; the envelope is on disk alone.
    Stored,
}

/// What memory knows of a call.
pub enum Known {
    Answer(Claimed),
    /// The answer is the envelope with this number, on disk.
    Stored(u64),
}

impl Execution {
    pub const fn new(number: u64, claim: &Claim, stage: Stage) -> Self {
        Self { number, at: claim.now, digest: claim.digest, idempotent: claim.idempotent, stage }
    }

    /// What a claim with this digest is told.
    pub fn answer(&self, digest: &[u8; 32]) -> Known {
        Known::Answer(match &self.stage {
            _ if self.digest != *digest => Claimed::Conflict,
            Stage::Running | Stage::Settling(_) => Claimed::Running,
            Stage::Finished(envelope) => Claimed::Finished(Arc::clone(envelope)),
            Stage::Stored => return Known::Stored(self.number),
            Stage::Orphaned if self.idempotent => Claimed::New,
            Stage::Orphaned => Claimed::InDoubt,
        })
    }

    /// Where it stands; `Err` has the number of an envelope that is on disk alone.
    pub fn status(&self) -> Result<Status, u64> {
        Ok(match &self.stage {
            Stage::Running | Stage::Settling(_) => Status::Running,
            Stage::Finished(envelope) => Status::Finished(Arc::clone(envelope)),
            Stage::Stored => return Err(self.number),
            Stage::Orphaned if self.idempotent => Status::Abandoned,
            Stage::Orphaned => Status::InDoubt,
        })
    }

    pub const fn is_unsettled(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Orphaned)
    }

    /// What runs and what is in doubt is kept whatever its age.
    const fn must_stay(&self) -> bool {
        match self.stage {
            Stage::Running | Stage::Settling(_) => true,
            Stage::Orphaned => !self.idempotent,
            Stage::Finished(_) | Stage::Stored => false,
        }
    }
}

impl Held {
    pub fn new(record: Arc<SessionRecord>) -> Self {
        let retrievals = record.retrievals;
        Self { record, retrievals, executions: HashMap::default(), order: VecDeque::new() }
    }

    /// Adds an execution, or replaces what was known of it.
    pub fn keep(&mut self, id: &Arc<str>, execution: Execution) {
        if self.executions.insert(Arc::clone(id), execution).is_none() {
            self.order.push_back(Arc::clone(id));
        }
    }

    /// As if it had never been.
    pub fn remove(&mut self, id: &str) {
        self.executions.remove(id);
        self.order.retain(|known| **known != *id);
    }

    /// The record with the budget as it is now.
    pub fn current(&mut self) -> Arc<SessionRecord> {
        if self.record.retrievals != self.retrievals {
            Arc::make_mut(&mut self.record).retrievals = self.retrievals;
        }
        Arc::clone(&self.record)
    }

    /// Drops the executions that need not be kept, and gives their numbers.
    pub fn forget(&mut self, now: i64) -> Vec<u64> {
        let mut surplus = self.order.len().saturating_sub(KEPT_PER_SESSION);
        let mut forgotten = Vec::new();
        if surplus == 0 {
            return forgotten;
        }
        let executions = &mut self.executions;
        self.order.retain(|id| {
            let is_surplus = surplus > 0;
            surplus = surplus.saturating_sub(1);
            let is_old =
                |known: &mut Execution| now.saturating_sub(known.at) >= KEPT_FOR_MS && !known.must_stay();
            if !is_surplus || !executions.get_mut(id).is_some_and(is_old) {
                return true;
            }
            forgotten.extend(executions.remove(id).map(|known| known.number));
            false
        });
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
    }
}

//! Decides claims, and takes a claim back if it does not reach its owner.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::evicted::{EvictedExecution, id_hash};
use super::session_entry::{Execution, ExecutionStage, SessionEntry};
use super::{Memory, lock};
use crate::store::journal::{Change, Deletion, Journal, PendingWrite};
use crate::store::rate_windows::{RateCharge, RateExceeded};
use crate::store::records::{Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Durability};
use crate::store::{Error, Result};

pub enum ClaimDecision<'a, J: Journal> {
    Decided(ClaimOutcome),
    /// This execution on disk is the one that is claimed.
    ReadEvicted(EvictedExecution),
    New(PendingWrite, NewClaim<'a, J>),
}

/// A claim that its owner has not received yet. Dropping it takes the claim back: the disk failed, or the caller has
/// gone away, and the execution never ran.
pub struct NewClaim<'a, J: Journal> {
    memory: &'a Memory<J>,
    claim: Arc<Claim>,
    number: u64,
    /// The turn that was charged. `None` for an orphan, which was charged when it was first claimed.
    charged_turn: Option<u64>,
    approval: Option<Approval>,
    is_received: bool,
}

/// A confirmation before and after its use.
struct Approval {
    approved: Arc<ConfirmationRecord>,
    used: Arc<ConfirmationRecord>,
}

impl<J: Journal> Memory<J> {
    /// Decides a claim, charges its meters and uses up its approval.
    pub(super) fn decide_claim(&self, claim: &Arc<Claim>) -> Result<ClaimDecision<'_, J>> {
        let mut shard = self.shard(&claim.session);
        let entry = shard.get_mut(&claim.session).ok_or_else(|| Error::NoSession(claim.session.clone()))?;
        if let Some(known) = entry.executions.get_mut(&*claim.execution) {
            let outcome = known.claim_outcome(&claim.digest);
            if outcome != ClaimOutcome::New {
                return Ok(ClaimDecision::Decided(outcome));
            }
            known.stage = ExecutionStage::Running;
            let number = known.number;
            // It needs no second approval, but a new one is used up.
            let approval = claim.confirmation.as_ref().and_then(|id| self.use_approval(id, claim));
            return Ok(self.journal_claim(entry, claim, number, None, approval));
        }
        if let Some(evicted) = entry.evicted.get(&id_hash(&claim.execution)) {
            return Ok(ClaimDecision::ReadEvicted(*evicted));
        }
        if let Some(charge) = entry.record.spent.exceeded(&claim.charges) {
            let spent = entry.record.spent.get(charge.scope, charge.meter);
            let outcome = ClaimOutcome::OverBudget { meter: charge.meter.to_owned(), spent };
            return Ok(ClaimDecision::Decided(outcome));
        }
        if let Some(exceeded) = self.count_call(&claim.rates, claim.now) {
            return Ok(ClaimDecision::Decided(ClaimOutcome::RateLimited(exceeded)));
        }
        let approval = claim.confirmation.as_ref().and_then(|id| self.use_approval(id, claim));
        if claim.confirmation.is_some() && approval.is_none() {
            self.refund_call(&claim.rates, claim.now);
            return Ok(ClaimDecision::Decided(ClaimOutcome::Unapproved));
        }
        if !claim.charges.is_empty() {
            Arc::make_mut(&mut entry.record).spent.add(&claim.charges);
        }
        let number = self.next_execution.fetch_add(1, Ordering::Relaxed);
        let Claim { digest, idempotent, now, .. } = **claim;
        let execution = Execution {
            number,
            claimed_at: now,
            digest,
            idempotent,
            args: None,
            stage: ExecutionStage::Running,
        };
        entry.insert(&claim.execution, execution);
        let turn = entry.record.turn;
        Ok(self.journal_claim(entry, claim, number, Some(turn), approval))
    }

    /// Journals a claim under the lock of its session.
    fn journal_claim(
        &self,
        entry: &SessionEntry,
        claim: &Arc<Claim>,
        number: u64,
        charged_turn: Option<u64>,
        approval: Option<Approval>,
    ) -> ClaimDecision<'_, J> {
        let is_charged = charged_turn.is_some() && !claim.charges.is_empty();
        let change = Change::Claim {
            number,
            claim: Arc::clone(claim),
            charged: is_charged.then(|| Arc::clone(&entry.record)),
            used: approval.as_ref().map(|approval| Arc::clone(&approval.used)),
        };
        let written = self.journal.write(change, claim.durability);
        let claim = Arc::clone(claim);
        let new = NewClaim { memory: self, claim, number, charged_turn, approval, is_received: false };
        ClaimDecision::New(written, new)
    }

    /// Counts a call for these rate limits, unless one of them is used up.
    pub(super) fn count_call(&self, rates: &[RateCharge], now: i64) -> Option<RateExceeded> {
        // Most calls have none.
        if rates.is_empty() {
            return None;
        }
        lock(&self.rates).spend(rates, now).err()
    }

    fn refund_call(&self, rates: &[RateCharge], at: i64) {
        if !rates.is_empty() {
            lock(&self.rates).refund(rates, at);
        }
    }

    fn use_approval(&self, id: &str, claim: &Claim) -> Option<Approval> {
        let mut confirmations = self.confirmations();
        let approved = confirmations.get(id).filter(|approval| approval.approves(claim)).cloned()?;
        let used = Arc::new(approved.without_secrets(ConfirmationStatus::Used));
        confirmations.insert(Arc::clone(&used));
        Some(Approval { approved, used })
    }
}

impl<J: Journal> NewClaim<'_, J> {
    /// Hands the claim to its owner, once it is on disk.
    pub fn receive(mut self) -> ClaimOutcome {
        self.is_received = true;
        ClaimOutcome::New
    }

    /// Removes the claim from memory and, with a relaxed write, from the disk: a failed commit may have reached it,
    /// and a commit without a waiter surely does. If this write is lost too, the execution is in doubt after a
    /// restart.
    fn take_back(&self, entry: &mut SessionEntry) {
        let Some(known) = entry.executions.get_mut(&*self.claim.execution) else { return };
        if known.number != self.number {
            return;
        }
        let Some(turn) = self.charged_turn else {
            known.stage = ExecutionStage::Orphaned;
            return;
        };
        entry.executions.remove(&*self.claim.execution);
        self.memory.refund_call(&self.claim.rates, self.claim.now);
        self.memory.delete(Deletion { executions: vec![self.number], ..Deletion::default() });
        if !self.claim.charges.is_empty() {
            let is_same_turn = turn == entry.record.turn;
            Arc::make_mut(&mut entry.record).spent.refund(&self.claim.charges, is_same_turn);
            self.memory.write_unawaited(Change::Session(Arc::clone(&entry.record)));
        }
    }
}

impl<J: Journal> Drop for NewClaim<'_, J> {
    fn drop(&mut self) {
        if self.is_received {
            return;
        }
        let mut shard = self.memory.shard(&self.claim.session);
        if let Some(entry) = shard.get_mut(&self.claim.session) {
            self.take_back(entry);
        }
        if let Some(Approval { approved, used }) = &self.approval {
            self.memory.confirmations().restore(used, Some(Arc::clone(approved)));
            self.memory.write_unawaited(Change::Confirmation(Arc::clone(approved)));
        }
    }
}

impl<J: Journal> Memory<J> {
    /// Journals a change without waiting for it.
    pub(super) fn write_unawaited(&self, change: Change) {
        drop(self.journal.write(change, Durability::Relaxed));
    }
}

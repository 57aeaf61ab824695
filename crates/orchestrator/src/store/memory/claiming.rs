//! How a claim is decided, and how it is taken back when it does not come to its owner.

use std::sync::Arc;

use super::Memory;
use super::held::{Execution, Held, Stage};
use super::stored;
use crate::store::journal::{Change, Forgotten, Journal, Written};
use crate::store::records::{Answer, Claim, Claimed, Confirmation, Durability};
use crate::store::{Error, Result};

/// What comes of a claim.
pub enum Decided<'a, J: Journal> {
    Known(Claimed),
    /// Perhaps it is this one, on disk.
    Stored(stored::Call),
    New(Written, Taken<'a, J>),
}

/// A claim that was decided for its owner, who does not know yet. Whoever drops it takes the claim back: the disk
/// failed, or nobody waits for the answer any more, and the call never ran.
pub struct Taken<'a, J: Journal> {
    memory: &'a Memory<J>,
    claim: Arc<Claim>,
    number: u64,
    spent: Spent,
    is_owned: bool,
}

/// What a claim has cost.
enum Spent {
    /// It was an orphan, paid for when it was first claimed; a new approval is used up even so.
    Again { approval: Option<Approval> },
    /// It was unknown.
    First { of_budget: bool, approval: Option<Approval> },
}

/// A confirmation, before and after.
struct Approval {
    approved: Arc<Confirmation>,
    used: Arc<Confirmation>,
}

impl<J: Journal> Memory<J> {
    /// Decides a claim; what it spends is spent here. `others` are calls on disk that are known to be others.
    pub(super) fn decide_claim(&self, claim: &Arc<Claim>, others: &[u64]) -> Result<Decided<'_, J>> {
        let mut shard = self.shard(&claim.session);
        let held = shard.get_mut(&claim.session).ok_or_else(|| Error::NoSession(claim.session.clone()))?;
        if let Some(known) = held.executions.get_mut(&*claim.execution) {
            let answer = known.answer(&claim.digest);
            if answer != Claimed::New {
                return Ok(Decided::Known(answer));
            }
            known.stage = Stage::Running;
            let number = known.number;
            let approval = claim.confirmation.as_ref().and_then(|id| self.use_up(id, claim));
            return Ok(self.take(claim, number, Spent::Again { approval }));
        }
        if let Some(call) = held.stored.with_id(&claim.execution, others).next() {
            return Ok(Decided::Stored(call));
        }
        // A call that comes late is paid by the turn that it comes in: or else it would cost nothing.
        let current = held.record.turn;
        let claim = &match claim.budget {
            Some((turn, limit)) if turn != current => {
                Arc::new(Claim { budget: Some((current, limit)), ..(**claim).clone() })
            }
            _ => Arc::clone(claim),
        };
        let budget = claim.budget;
        if budget.is_some_and(|(_, limit)| held.retrievals >= limit) {
            return Ok(Decided::Known(Claimed::OverBudget { used: held.retrievals }));
        }
        let approval = match &claim.confirmation {
            None => None,
            Some(id) => match self.use_up(id, claim) {
                None => return Ok(Decided::Known(Claimed::Unapproved)),
                approval => approval,
            },
        };
        held.retrievals += u32::from(budget.is_some());
        let number = self.number();
        held.keep(&claim.execution, Execution::new(number, claim, Stage::Running));
        Ok(self.take(claim, number, Spent::First { of_budget: budget.is_some(), approval }))
    }

    /// Writes a claim down, under the lock of its session.
    fn take(&self, claim: &Arc<Claim>, number: u64, spent: Spent) -> Decided<'_, J> {
        let used = match &spent {
            Spent::First { approval, .. } | Spent::Again { approval } => {
                approval.as_ref().map(|approval| Arc::clone(&approval.used))
            }
        };
        let change = Change::Claimed { number, claim: Arc::clone(claim), used };
        let written = self.journal.write(change, claim.durability);
        let claim = Arc::clone(claim);
        Decided::New(written, Taken { memory: self, claim, number, spent, is_owned: false })
    }

    fn use_up(&self, id: &str, claim: &Claim) -> Option<Approval> {
        let mut questions = self.questions();
        let approved = questions.get(id).filter(|asked| asked.fits(claim)).cloned()?;
        let used = Arc::new(approved.closed(Answer::Used));
        questions.put(Arc::clone(&used));
        Some(Approval { approved, used })
    }
}

impl<J: Journal> Taken<'_, J> {
    /// The owner knows.
    pub fn owned(mut self) -> Claimed {
        self.is_owned = true;
        Claimed::New
    }

    fn give_back(&self, held: &mut Held) {
        let Some(known) = held.executions.get_mut(&*self.claim.execution) else { return };
        if known.number != self.number {
            return;
        }
        match &self.spent {
            Spent::Again { .. } => known.stage = Stage::Orphaned,
            Spent::First { of_budget, .. } => {
                held.remove(&self.claim.execution);
                if *of_budget && self.claim.budget.is_some_and(|(turn, _)| turn == held.record.turn) {
                    held.retrievals = held.retrievals.saturating_sub(1);
                }
            }
        }
    }
}

impl<J: Journal> Drop for Taken<'_, J> {
    fn drop(&mut self) {
        if self.is_owned {
            return;
        }
        let memory = self.memory;
        let mut shard = memory.shard(&self.claim.session);
        if let Some(held) = shard.get_mut(&self.claim.session) {
            self.give_back(held);
        }
        // The disk may hold it even so: a failed commit can have reached it, an unawaited one surely does. Nobody
        // waits for these; if they are lost too, the call is in doubt after a restart, which is the safe side.
        if matches!(self.spent, Spent::First { .. }) {
            let forgotten = Forgotten { executions: vec![self.number], ..Forgotten::default() };
            drop(memory.journal.write(Change::Forgotten(forgotten), Durability::Relaxed));
        }
        let (Spent::First { approval, .. } | Spent::Again { approval }) = &self.spent;
        if let Some(Approval { approved, used }) = approval {
            memory.questions().put_back(used, Some(Arc::clone(approved)));
            let change = Change::Confirmation(Arc::clone(approved));
            drop(memory.journal.write(change, Durability::Relaxed));
        }
    }
}

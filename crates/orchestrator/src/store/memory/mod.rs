//! Everything in memory: for tests, and for decisions of a back end that keeps its records on disk (see the journal).
//! Sessions are spread over shards, so that calls of different sessions do not wait for one another. A change is made
//! under a lock, written to the journal under the same lock, and waited for outside of it.

mod backend;
mod claiming;
mod held;
mod nothing;
mod questions;
mod recent;
mod stored;

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use held::{Execution, Held, Stage};
use nothing::Nothing;
use questions::Questions;
use recent::Recent;

use super::Result;
use super::journal::Journal;
use super::records::{Claim, Confirmation, SessionRecord, Standing, Status};

const SHARDS: usize = 64;

/// A store in memory, with a journal or without one.
pub struct Memory<J = Nothing> {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    questions: Mutex<Questions>,
    recent: Recent,
    /// The number of the next execution.
    next: AtomicU64,
    journal: J,
}

type Shard = HashMap<String, Held, RandomState>;

impl<J> fmt::Debug for Memory<J> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::with(Nothing::default(), usize::MAX)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J: Journal> Memory<J> {
    /// `room` is how many bytes of envelopes are kept in memory; the journal reads the others back.
    pub(super) fn with(journal: J, room: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (hasher, questions) = (RandomState::default(), Mutex::default());
        Self { shards, hasher, questions, recent: Recent::new(room), next: AtomicU64::new(1), journal }
    }

    fn shard(&self, session: &str) -> MutexGuard<'_, Shard> {
        locked(&self.shards[self.hasher.hash_one(session) as usize % SHARDS])
    }

    pub(super) const fn journal(&self) -> &J {
        &self.journal
    }

    fn questions(&self) -> MutexGuard<'_, Questions> {
        locked(&self.questions)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Does something to an execution, if it is known.
    fn with_execution<T>(
        &self,
        session: &str,
        execution: &str,
        act: impl FnOnce(&mut Execution) -> T,
    ) -> Option<T> {
        self.shard(session).get_mut(session)?.executions.get_mut(execution).map(act)
    }

    /// Reads back what is known of a call that is on disk alone. Nothing when the call with this number is another one.
    async fn stored(&self, session: &str, execution: &str, call: stored::Call) -> Result<Option<Standing>> {
        let standing = self.journal.call(call.number, session, execution).await?;
        if let Some(Standing { digest, status }) = &standing
            && !matches!(status, Status::Finished(_))
            && let Some(held) = self.shard(session).get_mut(session)
        {
            // Its settlement was relaxed and has not reached the disk: it is as if it had not been made.
            held.orphan(execution, call, *digest, *status == Status::Abandoned);
        }
        Ok(standing)
    }

    /// Notes that an envelope is in memory, and lets older ones go.
    fn remember(&self, session: &str, execution: &str, bytes: usize) {
        for call in self.recent.push(session, execution, bytes) {
            if let Some(held) = self.shard(&call.session).get_mut(&*call.session) {
                held.let_go(&call.execution);
            }
        }
    }
}

/// What a back end has read back from disk, when it is opened.
impl<J: Journal> Memory<J> {
    pub(super) fn load_session(&self, record: SessionRecord) {
        let id = record.id.clone();
        self.shard(&id).insert(id.clone(), Held::new(Arc::new(record)));
    }

    /// What had not finished has lost its owner. Executions come in the order of their numbers, after the sessions.
    pub(super) fn load_execution(&self, number: u64, claim: &Claim, is_settled: bool) {
        self.next.fetch_max(number + 1, Ordering::Relaxed);
        let mut shard = self.shard(&claim.session);
        let Some(held) = shard.get_mut(&claim.session) else { return };
        if is_settled {
            held.keep_stored(&claim.execution, number, claim.now);
        } else {
            held.keep(&claim.execution, Execution::new(number, claim, Stage::Orphaned));
        }
    }

    /// How many calls of the session's turn are on disk: the record may say less.
    pub(super) fn load_spent(&self, session: &str, turn: u64, spent: u32) {
        if let Some(held) = self.shard(session).get_mut(session)
            && held.record.turn == turn
        {
            held.retrievals = held.retrievals.max(spent);
        }
    }

    pub(super) fn load_confirmation(&self, confirmation: Confirmation) {
        self.questions().put(Arc::new(confirmation));
    }
}

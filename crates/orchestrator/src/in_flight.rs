//! The calls that run in this process: one that comes again meanwhile waits for the same result.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tokio::sync::watch;
use toolwright_contract::Envelope;

use crate::store::SessionRecord;

const SHARDS: usize = 64;

type Result = Option<Arc<Envelope>>;

/// By session and execution. Few run at a time, so a shard is a list.
#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Shards>);

struct Shards {
    lists: [Mutex<Vec<Running>>; SHARDS],
    next: AtomicU64,
    hasher: RandomState,
}

struct Running {
    number: u64,
    hash: u64,
    session: Arc<SessionRecord>,
    execution: Arc<str>,
    digest: [u8; 32],
    /// Made for the first who waits.
    result: Option<watch::Sender<Result>>,
}

/// What a call that arrives is.
pub(crate) enum Seat {
    /// The first with its id.
    First(Place),
    /// The same call again: it waits.
    Same(watch::Receiver<Result>),
    /// The id is in use for something else, which comes to this.
    Other(watch::Receiver<Result>),
}

/// The first call's place; dropping it lets those who wait try themselves.
pub(crate) struct Place {
    all: InFlight,
    hash: u64,
    /// Until it was left.
    number: Option<u64>,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            lists: std::array::from_fn(|_| Mutex::default()),
            next: AtomicU64::new(0),
            hasher: RandomState::default(),
        }
    }
}

impl InFlight {
    fn shard(&self, hash: u64) -> MutexGuard<'_, Vec<Running>> {
        self.0.lists[hash as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(&self, session: &Arc<SessionRecord>, execution: &Arc<str>, digest: [u8; 32]) -> Seat {
        let hash = self.0.hasher.hash_one((&*session.id, &**execution));
        let mut shard = self.shard(hash);
        let is_it = |running: &&mut Running| {
            running.hash == hash && running.session.id == session.id && running.execution == *execution
        };
        if let Some(running) = shard.iter_mut().find(is_it) {
            let result = running.result.get_or_insert_with(|| watch::Sender::new(None)).subscribe();
            return if running.digest == digest { Seat::Same(result) } else { Seat::Other(result) };
        }
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (session, execution) = (Arc::clone(session), Arc::clone(execution));
        shard.push(Running { number, hash, session, execution, digest, result: None });
        Seat::First(Place { all: self.clone(), hash, number: Some(number) })
    }
}

impl Place {
    /// Hands the result to those who wait.
    pub fn finish(mut self, envelope: &Arc<Envelope>) {
        if let Some(result) = self.leave() {
            result.send_replace(Some(Arc::clone(envelope)));
        }
    }

    fn leave(&mut self) -> Option<watch::Sender<Result>> {
        let number = self.number.take()?;
        let mut shard = self.all.shard(self.hash);
        let at = shard.iter().position(|running| running.number == number)?;
        shard.swap_remove(at).result
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// The result of the first call, or `None` when it went away without one.
pub(crate) async fn wait(mut result: watch::Receiver<Result>) -> Result {
    result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone())
}

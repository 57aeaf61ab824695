//! The calls that run in this process: a call that is sent again meanwhile waits for the same result.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tokio::sync::watch;
use toolwright_contract::Envelope;

use crate::store::SessionRecord;

const SHARDS: usize = 64;

type Result = Option<Arc<Envelope>>;
pub(crate) type ResultReceiver = watch::Receiver<Result>;

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
    /// Created for the first call that waits.
    result: Option<watch::Sender<Result>>,
}

/// How a call relates to those that run.
pub(crate) enum Arrival {
    /// The first with its execution id.
    First(Slot),
    /// Another call runs with the same execution id.
    Running { is_same_call: bool, result: ResultReceiver },
}

/// The entry of a running call. Dropped without a result, it lets the waiting calls try themselves.
pub(crate) struct Slot {
    in_flight: InFlight,
    hash: u64,
    /// `None` once it was removed.
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

    pub fn enter(&self, session: &Arc<SessionRecord>, execution: &Arc<str>, digest: [u8; 32]) -> Arrival {
        let hash = self.0.hasher.hash_one((&*session.id, &**execution));
        let mut shard = self.shard(hash);
        let has_same_id = |running: &&mut Running| {
            running.hash == hash && running.session.id == session.id && running.execution == *execution
        };
        if let Some(running) = shard.iter_mut().find(has_same_id) {
            let result = running.result.get_or_insert_with(|| watch::Sender::new(None)).subscribe();
            let is_same_call = running.digest == digest;
            return Arrival::Running { is_same_call, result };
        }
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (session, execution) = (Arc::clone(session), Arc::clone(execution));
        shard.push(Running { number, hash, session, execution, digest, result: None });
        Arrival::First(Slot { in_flight: self.clone(), hash, number: Some(number) })
    }
}

impl Slot {
    /// Hands the result to the waiting calls.
    pub fn finish(mut self, envelope: &Arc<Envelope>) {
        if let Some(result) = self.remove() {
            result.send_replace(Some(Arc::clone(envelope)));
        }
    }

    fn remove(&mut self) -> Option<watch::Sender<Result>> {
        let number = self.number.take()?;
        let mut shard = self.in_flight.shard(self.hash);
        let index = shard.iter().position(|running| running.number == number)?;
        shard.swap_remove(index).result
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.remove());
    }
}

/// The result of the running call, or `None` when it was cancelled.
pub(crate) async fn wait(mut result: ResultReceiver) -> Result {
    result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone())
}

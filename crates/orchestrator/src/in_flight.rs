//! The calls that run in this process: one that comes again meanwhile waits for the same result.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use toolwright_contract::Envelope;

const SHARDS: usize = 64;

type Key = (String, String);
type Result = Option<Arc<Envelope>>;

/// By session and execution.
#[derive(Clone)]
pub(crate) struct InFlight(Arc<Vec<Mutex<HashMap<Key, Running>>>>);

struct Running {
    digest: [u8; 32],
    result: watch::Receiver<Result>,
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
    key: Key,
    result: watch::Sender<Result>,
}

impl Default for InFlight {
    fn default() -> Self {
        Self(Arc::new((0..SHARDS).map(|_| Mutex::default()).collect()))
    }
}

impl InFlight {
    fn shard(&self, key: &Key) -> MutexGuard<'_, HashMap<Key, Running>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.0[hasher.finish() as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn enter(&self, session: &str, execution: &str, digest: [u8; 32]) -> Seat {
        let key = (session.to_owned(), execution.to_owned());
        match self.shard(&key).entry(key.clone()) {
            Entry::Occupied(running) if running.get().digest != digest => {
                Seat::Other(running.get().result.clone())
            }
            Entry::Occupied(running) => Seat::Same(running.get().result.clone()),
            Entry::Vacant(free) => {
                let (sender, result) = watch::channel(None);
                free.insert(Running { digest, result });
                Seat::First(Place { all: self.clone(), key, result: sender })
            }
        }
    }
}

impl Place {
    /// Hands the result to those who wait.
    pub fn finish(self, envelope: &Arc<Envelope>) {
        self.result.send_replace(Some(Arc::clone(envelope)));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.shard(&self.key).remove(&self.key);
    }
}

/// The result of the first call, or `None` when it went away without one.
pub(crate) async fn wait(mut result: watch::Receiver<Result>) -> Result {
    result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone())
}

//! The calls that run in this process. A duplicate of a running call waits for its result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tokio::sync::watch;
use toolwright_contract::Envelope;

type Result = Option<Arc<Envelope>>;
pub(crate) type ResultReceiver = watch::Receiver<Result>;

/// Session id and execution id.
type Key = (String, Arc<str>);

#[derive(Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<Key, Running, RandomState>>>);

struct Running {
    digest: [u8; 32],
    /// Created for the first call that waits.
    result: Option<watch::Sender<Result>>,
}

/// How a call relates to those that run.
pub(crate) enum EnterOutcome {
    /// The first with its execution id.
    First(CallSlot),
    /// Another call runs with the same execution id.
    Running { is_same_call: bool, result: ResultReceiver },
}

/// The entry of a running call. Dropped without a result, it lets the waiting calls try themselves.
pub(crate) struct CallSlot {
    in_flight: InFlight,
    /// `None` once it was removed.
    key: Option<Key>,
}

impl InFlight {
    fn running(&self) -> MutexGuard<'_, HashMap<Key, Running, RandomState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_running(&self, session: &str, execution: &str) -> bool {
        self.running().contains_key(&(session.to_owned(), Arc::from(execution)))
    }

    pub fn enter(&self, session: &str, execution: &Arc<str>, digest: [u8; 32]) -> EnterOutcome {
        match self.running().entry((session.to_owned(), Arc::clone(execution))) {
            Entry::Occupied(mut entry) => {
                let running = entry.get_mut();
                let result = running.result.get_or_insert_with(|| watch::Sender::new(None)).subscribe();
                EnterOutcome::Running { is_same_call: running.digest == digest, result }
            }
            Entry::Vacant(entry) => {
                let key = Some(entry.key().clone());
                entry.insert(Running { digest, result: None });
                EnterOutcome::First(CallSlot { in_flight: self.clone(), key })
            }
        }
    }
}

impl CallSlot {
    /// Hands the result to the waiting calls.
    pub fn finish(mut self, envelope: &Arc<Envelope>) {
        if let Some(result) = self.remove() {
            result.send_replace(Some(Arc::clone(envelope)));
        }
    }

    fn remove(&mut self) -> Option<watch::Sender<Result>> {
        self.in_flight.running().remove(&self.key.take()?)?.result
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        drop(self.remove());
    }
}

/// The result of the running call, or `None` when it was cancelled.
pub(crate) async fn wait(mut result: ResultReceiver) -> Result {
    result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone())
}

//! Results of calls that waited for approval, broadcast to subscribed clients. The store has the record: a
//! client that has missed a result reads it there (see [`Orchestrator::recorded_envelope`]).
//!
//! [`Orchestrator::recorded_envelope`]: crate::Orchestrator::recorded_envelope

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use toolwright_contract::Envelope;

/// Queued results for a subscriber to all sessions, and for a subscriber to one.
const QUEUE_OF_ALL: usize = 1024;
const QUEUE_OF_SESSION: usize = 64;

/// The result of a call that waited for approval.
#[derive(Debug, Clone)]
pub struct DeferredResult {
    pub session: String,
    pub execution_id: String,
    pub envelope: Arc<Envelope>,
}

type Senders = HashMap<Option<String>, broadcast::Sender<DeferredResult>>;

/// The subscribers, by session; `None` is all sessions.
#[derive(Default)]
pub(crate) struct DeferredResults(Mutex<Senders>);

impl DeferredResults {
    /// Sends a result to the subscribers, if there are any.
    pub fn send(&self, result: &DeferredResult) {
        let senders = self.senders();
        for sender in [Some(result.session.clone()), None].iter().filter_map(|key| senders.get(key)) {
            // A sender without subscribers is removed by the sweep.
            let _ = sender.send(result.clone());
        }
    }

    pub fn subscribe(&self, session: Option<&str>) -> broadcast::Receiver<DeferredResult> {
        let length = if session.is_some() { QUEUE_OF_SESSION } else { QUEUE_OF_ALL };
        let mut senders = self.senders();
        let sender = senders.entry(session.map(str::to_owned));
        sender.or_insert_with(|| broadcast::Sender::new(length)).subscribe()
    }

    /// Removes the senders that have no subscribers.
    pub fn sweep(&self) {
        self.senders().retain(|_, sender| sender.receiver_count() > 0);
    }

    fn senders(&self) -> MutexGuard<'_, Senders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

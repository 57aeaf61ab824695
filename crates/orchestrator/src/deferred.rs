//! Results of calls that waited for approval, broadcast to the clients that show them. The store's record counts: a
//! client that has missed a result reads it there (see [`Orchestrator::recorded`]).
//!
//! [`Orchestrator::recorded`]: crate::Orchestrator::recorded

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

pub(crate) struct DeferredResults {
    all: broadcast::Sender<DeferredResult>,
    by_session: Mutex<HashMap<String, broadcast::Sender<DeferredResult>>>,
}

impl Default for DeferredResults {
    fn default() -> Self {
        Self { all: broadcast::channel(QUEUE_OF_ALL).0, by_session: Mutex::default() }
    }
}

impl DeferredResults {
    /// Sends a result to the subscribers, if there are any.
    pub fn send(&self, result: DeferredResult) {
        let mut by_session = self.by_session();
        if let Some(sender) = by_session.get(&result.session)
            && sender.send(result.clone()).is_err()
        {
            by_session.remove(&result.session);
        }
        drop(by_session);
        let _ = self.all.send(result);
    }

    pub fn subscribe(&self) -> broadcast::Receiver<DeferredResult> {
        self.all.subscribe()
    }

    pub fn subscribe_to(&self, session: &str) -> broadcast::Receiver<DeferredResult> {
        let mut by_session = self.by_session();
        if let Some(sender) = by_session.get(session) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(QUEUE_OF_SESSION);
        by_session.insert(session.to_owned(), sender);
        receiver
    }

    /// Removes the sessions that have no subscribers.
    pub fn sweep(&self) {
        self.by_session().retain(|_, sender| sender.receiver_count() > 0);
    }

    fn by_session(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<DeferredResult>>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The answers to calls that waited for a person, on their way to whoever shows them. They are a convenience: what counts
//! is the record, and who has missed something reads it there (see [`Orchestrator::recorded`]).
//!
//! [`Orchestrator::recorded`]: crate::Orchestrator::recorded

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;
use toolwright_contract::Envelope;

/// How many wait for a subscriber to all of them, and for one of a single session.
const OF_ALL: usize = 1024;
const OF_SESSION: usize = 64;

/// The answer to a call that was waiting for a person.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub session: String,
    pub execution_id: String,
    pub envelope: Arc<Envelope>,
}

pub(crate) struct Deliveries {
    all: broadcast::Sender<Delivery>,
    by_session: Mutex<HashMap<String, broadcast::Sender<Delivery>>>,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self { all: broadcast::channel(OF_ALL).0, by_session: Mutex::default() }
    }
}

impl Deliveries {
    /// Hands an answer to those who listen; perhaps nobody does.
    pub fn send(&self, delivery: Delivery) {
        let mut by_session = self.by_session();
        if let Some(listeners) = by_session.get(&delivery.session)
            && listeners.send(delivery.clone()).is_err()
        {
            by_session.remove(&delivery.session);
        }
        drop(by_session);
        let _ = self.all.send(delivery);
    }

    pub fn of_all(&self) -> broadcast::Receiver<Delivery> {
        self.all.subscribe()
    }

    pub fn of(&self, session: &str) -> broadcast::Receiver<Delivery> {
        let mut by_session = self.by_session();
        if let Some(listeners) = by_session.get(session) {
            return listeners.subscribe();
        }
        let (listeners, receiver) = broadcast::channel(OF_SESSION);
        by_session.insert(session.to_owned(), listeners);
        receiver
    }

    /// Forgets the sessions that nobody listens to any more.
    pub fn sweep(&self) {
        self.by_session().retain(|_, listeners| listeners.receiver_count() > 0);
    }

    fn by_session(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Delivery>>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

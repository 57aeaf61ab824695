//! Wakes those who watch a session when its record has changed in this process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The watched sessions.
#[derive(Default)]
pub(crate) struct SessionWatches(Mutex<HashMap<String, watch::Sender<()>>>);

impl SessionWatches {
    pub fn subscribe(&self, session: &str) -> watch::Receiver<()> {
        self.senders().entry(session.to_owned()).or_default().subscribe()
    }

    pub fn wake(&self, session: &str) {
        if let Some(sender) = self.senders().get(session) {
            sender.send_replace(());
        }
    }

    /// Removes the sessions without a subscriber.
    pub fn sweep(&self) {
        self.senders().retain(|_, sender| !sender.is_closed());
    }

    fn senders(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

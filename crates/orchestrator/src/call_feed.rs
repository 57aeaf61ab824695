//! A live feed of the audit entries of calls and answers that end in this process. A slow subscriber misses entries and
//! gets their number (`RecvError::Lagged`); the audit log has all of them.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::orchestrator::Orchestrator;
use crate::store::AuditEntry;

/// Queued entries.
const QUEUE: usize = 512;

pub(crate) struct CallFeed(broadcast::Sender<Arc<AuditEntry>>);

impl Default for CallFeed {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUE))
    }
}

impl CallFeed {
    /// Whether anyone watches.
    pub fn is_watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub fn send(&self, entry: Arc<AuditEntry>) {
        // The last watcher may have gone away.
        let _ = self.0.send(entry);
    }
}

impl Orchestrator {
    /// The audit entries of all calls and answers of this process from now on. The caller decides who may see which.
    pub fn watch_calls(&self) -> broadcast::Receiver<Arc<AuditEntry>> {
        self.0.call_feed.0.subscribe()
    }
}

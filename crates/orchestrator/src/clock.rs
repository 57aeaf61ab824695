//! What time it is, in milliseconds since 1970. Tests hold the hands themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time of the orchestrator.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The machine's.
    #[default]
    System,
    /// Stands where it was set.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands still.
    pub fn manual(at: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(at)))
    }

    /// Moves a manual clock forward; the machine's moves by itself.
    pub fn advance(&self, milliseconds: i64) {
        if let Self::Manual(hands) = self {
            hands.fetch_add(milliseconds, Ordering::Relaxed);
        }
    }

    pub fn now(&self) -> i64 {
        match self {
            Self::Manual(hands) => hands.load(Ordering::Relaxed),
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
        }
    }
}

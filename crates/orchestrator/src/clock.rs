//! The time in milliseconds since 1970. Tests set it themselves.

#![expect(clippy::disallowed_methods, reason = "the clock that everything else is given")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of an orchestrator.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// A clock that only [`Clock::advance`] moves.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub fn manual(now: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(now)))
    }

    /// Moves a manual clock forward; does nothing to the system's clock.
    pub fn advance(&self, milliseconds: i64) {
        if let Self::Manual(now) = self {
            now.fetch_add(milliseconds, Ordering::Relaxed);
        }
    }

    pub fn now(&self) -> i64 {
        match self {
            Self::Manual(now) => now.load(Ordering::Relaxed),
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
        }
    }
}

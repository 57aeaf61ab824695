//! The time in milliseconds since 1970. Tests set it themselves.
//!
//! Limits, blocks and expiries are computed from times that were read before. If the system's clock is set back, they
//! would last longer by as much; so the orchestrator reads a `SteadyClock`, which continues instead.

#![expect(clippy::disallowed_methods, reason = "the clock that everything else is given")]

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

    /// Moves a manual clock, backwards if it is negative; does nothing to the system's clock.
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

/// Readings of several threads may be out of order by this much; a larger step back means that the clock was set.
const OUT_OF_ORDER_MS: i64 = 1000;

/// A clock that never goes back: when its source does, it continues from the time it had reached.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    source: Clock,
    /// How far the source was set back in all.
    offset: AtomicI64,
    /// The latest time.
    latest: AtomicI64,
    setting: Mutex<()>,
}

impl SteadyClock {
    pub fn new(source: Clock) -> Self {
        let (offset, latest) = (AtomicI64::new(0), AtomicI64::new(i64::MIN));
        Self { source, offset, latest, setting: Mutex::new(()) }
    }

    pub fn now(&self) -> i64 {
        let now = self.source.now().saturating_add(self.offset.load(Ordering::Relaxed));
        let latest = self.latest.fetch_max(now, Ordering::Relaxed);
        if latest.saturating_sub(now) <= OUT_OF_ORDER_MS { now.max(latest) } else { self.set_back() }
    }

    #[cold]
    fn set_back(&self) -> i64 {
        let _setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let (latest, source) = (self.latest.load(Ordering::Relaxed), self.source.now());
        let offset = self.offset.load(Ordering::Relaxed);
        // Another thread may have been first.
        if latest.saturating_sub(source.saturating_add(offset)) > OUT_OF_ORDER_MS {
            let offset = latest.saturating_sub(source);
            self.offset.store(offset, Ordering::Relaxed);
            tracing::warn!("the clock was set back; limits and expiries continue {offset} ms ahead of it");
        }
        latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_continues_when_its_source_is_set_back() {
        let source = Clock::manual(1_000_000);
        let steady = SteadyClock::new(source.clone());
        assert_eq!(steady.now(), 1_000_000);
        source.advance(5_000);
        assert_eq!(steady.now(), 1_005_000);
        for _ in 0..3 {
            source.advance(-3_600_000);
            let before = steady.now();
            source.advance(10_000);
            assert_eq!(steady.now(), before + 10_000, "it runs at the pace of its source");
        }
        assert_eq!(steady.now(), 1_035_000);
        source.advance(-500);
        assert_eq!(steady.now(), 1_035_000, "readings out of order do not move it");
        source.advance(1_500);
        assert_eq!(steady.now(), 1_036_000);
    }

    #[test]
    fn a_steady_clock_is_not_moved_by_concurrent_readings() {
        let steady = SteadyClock::new(Clock::System);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100_000).for_each(|_| _ = steady.now()));
            }
        });
        assert!((steady.now() - Clock::System.now()).abs() < OUT_OF_ORDER_MS);
    }
}

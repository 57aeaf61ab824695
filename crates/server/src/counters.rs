//! What the server counts of itself; what tools do is counted by the orchestrator.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Requests and connections.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// By the first digit of the status.
    answered: [AtomicU64; 6],
    pub running: AtomicUsize,
    pub connections: AtomicUsize,
}

impl Counters {
    pub fn count(&self, status: u16) {
        let class = usize::from(status / 100).min(self.answered.len() - 1);
        self.answered[class].fetch_add(1, Ordering::Relaxed);
    }

    /// `("2xx", count)` and so on.
    pub fn answered(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const CLASSES: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = self.answered.iter().map(|count| count.load(Ordering::Relaxed));
        CLASSES.into_iter().zip(counts).skip(2)
    }

    pub fn begin(counter: &AtomicUsize) -> Running<'_> {
        let now = counter.fetch_add(1, Ordering::Relaxed) + 1;
        Running { counter, now }
    }
}

/// Counts something for as long as it is held.
pub(crate) struct Running<'a> {
    counter: &'a AtomicUsize,
    /// How many there were, this one included.
    pub now: usize,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

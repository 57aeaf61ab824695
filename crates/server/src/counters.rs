//! The server's own counters. Calls are counted by the orchestrator.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Requests and connections.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Responses by the first digit of the status.
    responses: [AtomicU64; 6],
    pub running: AtomicUsize,
    pub connections: AtomicUsize,
}

impl Counters {
    pub fn count(&self, status: u16) {
        let class = usize::from(status / 100).min(self.responses.len() - 1);
        self.responses[class].fetch_add(1, Ordering::Relaxed);
    }

    /// `("2xx", count)` and so on.
    pub fn responses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const CLASSES: [&str; 6] = ["0xx", "1xx", "2xx", "3xx", "4xx", "5xx"];
        let counts = self.responses.iter().map(|count| count.load(Ordering::Relaxed));
        CLASSES.into_iter().zip(counts).skip(2)
    }

    pub fn begin(counter: &AtomicUsize) -> CountGuard<'_> {
        let now = counter.fetch_add(1, Ordering::Relaxed) + 1;
        CountGuard { counter, now }
    }
}

/// Subtracts one from the count of `key`, and removes a count of zero.
pub(crate) fn decrement<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Counts one until it is dropped.
pub(crate) struct CountGuard<'a> {
    counter: &'a AtomicUsize,
    /// The count when it began, itself included.
    pub now: usize,
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

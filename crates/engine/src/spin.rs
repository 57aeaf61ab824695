//! Adaptive spinning: workers and callers poll for a moment before they sleep, because waking a thread takes longer than
//! most calls. Each place records how often spinning succeeded, and stops when it does not pay.
use std::{
    hint::spin_loop,
    sync::atomic::{AtomicI32, Ordering},
    time::{Duration, Instant},
};

const MAX_SCORE: i32 = 8;
/// Subtracted for an unsuccessful spin. While the score is negative, nothing spins.
const MISS_PENALTY: i32 = 6;
const MIN_SCORE: i32 = -24;

/// A score of recent spins. Races between threads only make it slightly inexact.
#[derive(Debug, Default)]
pub(crate) struct SpinHistory(AtomicI32);

impl SpinHistory {
    /// Whether to spin this time.
    pub fn should_spin(&self) -> bool {
        let score = self.0.load(Ordering::Relaxed);
        if score < 0 {
            self.0.store(score + 1, Ordering::Relaxed);
        }
        score >= 0
    }

    pub fn record(&self, found: bool) {
        let score = self.0.load(Ordering::Relaxed);
        let score = if found { (score + 1).min(MAX_SCORE) } else { (score - MISS_PENALTY).max(MIN_SCORE) };
        self.0.store(score, Ordering::Relaxed);
    }
}

/// Calls `find` until it returns something or the time is over.
pub(crate) fn spin_until<T>(time: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        for _ in 0..16 {
            if let Some(found) = find() {
                return Some(found);
            }
            spin_loop();
        }
        if began.elapsed() >= time {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsuccessful_spins_become_rare() {
        let history = SpinHistory::default();
        let spins = (0..1000).filter(|_| history.should_spin()).inspect(|_| history.record(false)).count();
        assert!(spins < 200, "{spins}");
    }

    #[test]
    fn successful_spins_continue_after_an_unsuccessful_one() {
        let history = SpinHistory::default();
        (0..100).for_each(|_| history.record(true));
        history.record(false);
        assert!(history.should_spin());
    }
}

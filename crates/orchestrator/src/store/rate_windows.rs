//! Rate limits: a sliding window of calls for each key. A gate decides which limits a call counts for; a store only
//! counts. In memory here; PostgreSQL has its own tables, which all processes share.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

/// Expired windows are removed when there are more than this, and twice what remained after the last removal.
const SWEEP_ABOVE: usize = 4096;
/// No window is longer, so that its end can be computed.
const MAX_WINDOW_MS: i64 = i64::MAX / 4;

/// A rate limit that a claim counts for: at most `calls` in any `window_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RateCharge {
    /// Limits with the same key share their calls.
    pub key: String,
    pub calls: i64,
    pub window_ms: i64,
}

/// A rate limit that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateExceeded {
    /// Its index among the charges of the claim.
    pub place: usize,
    /// How long until another call is allowed.
    pub wait_ms: i64,
}

impl RateCharge {
    pub fn new(key: String, calls: u64, window_ms: u64) -> Self {
        let window_ms = i64::try_from(window_ms).unwrap_or(i64::MAX).min(MAX_WINDOW_MS);
        Self { key, calls: i64::try_from(calls).unwrap_or(i64::MAX), window_ms }
    }
}

/// The calls of the current windows.
#[derive(Default)]
pub(super) struct RateWindows {
    by_key: HashMap<String, Window>,
    sweep_above: usize,
}

#[derive(Default)]
struct Window {
    calls: VecDeque<i64>,
    until: i64,
}

impl RateWindows {
    /// Counts a call for all of these limits, or for none of them if one is used up.
    pub fn spend(&mut self, rates: &[RateCharge], now: i64) -> Result<(), RateExceeded> {
        if self.by_key.len() > self.sweep_above.max(SWEEP_ABOVE) {
            self.by_key.retain(|_, window| window.until > now);
            self.sweep_above = self.by_key.len() * 2;
        }
        for (place, rate) in rates.iter().enumerate() {
            let wait_ms = self.by_key.get_mut(&rate.key).map_or_else(
                || (rate.calls == 0).then_some(rate.window_ms),
                |window| window.wait_ms(rate, now),
            );
            if let Some(wait_ms) = wait_ms {
                return Err(RateExceeded { place, wait_ms });
            }
        }
        for rate in rates {
            let window = self.by_key.entry(rate.key.clone()).or_default();
            window.calls.push_back(now);
            window.until = now.saturating_add(rate.window_ms);
        }
        Ok(())
    }

    /// Takes back a call that was counted at this time.
    pub fn refund(&mut self, rates: &[RateCharge], at: i64) {
        for rate in rates {
            let Some(window) = self.by_key.get_mut(&rate.key) else { continue };
            if let Some(place) = window.calls.iter().rposition(|call| *call == at) {
                window.calls.remove(place);
            }
        }
    }
}

impl Window {
    /// How long until another call is allowed; `None` if it is now.
    fn wait_ms(&mut self, rate: &RateCharge, now: i64) -> Option<i64> {
        let end = |at: &i64| at.saturating_add(rate.window_ms);
        while self.calls.front().is_some_and(|at| end(at) <= now) {
            self.calls.pop_front();
        }
        let limit = usize::try_from(rate.calls).unwrap_or(usize::MAX);
        match self.calls.len().checked_sub(limit) {
            // Room for it comes when so many have left the window that it has fewer than its limit.
            Some(beyond) => Some(self.calls.get(beyond).map_or(rate.window_ms, |at| end(at) - now)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(rates: &mut RateWindows, at: i64, keys: &[(&str, u64)]) -> Result<(), RateExceeded> {
        let rate = |(key, calls): &(&str, u64)| RateCharge::new((*key).to_owned(), *calls, 100);
        rates.spend(&keys.iter().map(rate).collect::<Vec<_>>(), at)
    }

    fn exceeded(place: usize, wait_ms: i64) -> Result<(), RateExceeded> {
        Err(RateExceeded { place, wait_ms })
    }

    #[test]
    fn any_window_holds_at_most_the_limit() {
        let mut rates = RateWindows::default();
        let mut spend = |now| spend(&mut rates, now, &[("k", 2)]);
        assert_eq!([spend(0), spend(60), spend(99)], [Ok(()), Ok(()), exceeded(0, 1)]);
        assert_eq!([spend(100), spend(101), spend(160)], [Ok(()), exceeded(0, 59), Ok(())]);
        assert_eq!(super::tests::spend(&mut rates, 160, &[("other", 2)]), Ok(()));
    }

    #[test]
    fn a_call_counts_for_all_of_its_limits_or_for_none() {
        let mut rates = RateWindows::default();
        assert_eq!(spend(&mut rates, 10, &[("k", 1)]), Ok(()));
        assert_eq!(spend(&mut rates, 11, &[("mine", 1), ("k", 1)]), exceeded(1, 99));
        assert_eq!(spend(&mut rates, 12, &[("mine", 1)]), Ok(()));
        assert_eq!(spend(&mut rates, 13, &[("none", 0)]), exceeded(0, 100));
    }

    #[test]
    fn a_call_that_was_taken_back_does_not_count() {
        let mut rates = RateWindows::default();
        let limit = [RateCharge::new("k".to_owned(), 1, 100)];
        for now in 0..10 {
            assert_eq!(rates.spend(&limit, now), Ok(()));
            rates.refund(&limit, now);
        }
        assert_eq!(rates.spend(&limit, 10), Ok(()));
        assert_eq!(rates.spend(&limit, 11), exceeded(0, 99));
    }

    #[test]
    fn expired_windows_are_removed() {
        let mut rates = RateWindows::default();
        for now in 0..200_000 {
            spend(&mut rates, now, &[(&format!("client {now}"), 1)]).unwrap();
        }
        let remaining = rates.by_key.len();
        assert!(remaining <= SWEEP_ABOVE + 1, "{remaining}");
    }
}

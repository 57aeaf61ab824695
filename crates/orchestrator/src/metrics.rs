//! Counters per tool and version: calls, errors by type, replays, refusals, overruns, latency.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use foldhash::fast::RandomState;
use serde::Serialize;
use toolwright_contract::ErrorKind;

use crate::finish::End;

/// Buckets per power of two of microseconds: a quantile is off by an eighth at most.
const STEPS: u64 = 8;
const BUCKETS: usize = 40 * STEPS as usize;

/// Counters of all tools, by name and version.
#[derive(Default)]
pub(crate) struct Metrics(RwLock<Map<Map<Arc<Counters>>>>);

type Map<T> = HashMap<String, T, RandomState>;

pub(crate) struct Counters {
    calls: AtomicU64,
    replays: AtomicU64,
    refusals: AtomicU64,
    overruns: AtomicU64,
    retries: AtomicU64,
    errors: Vec<AtomicU64>,
    latency: Vec<AtomicU64>,
}

/// The numbers of one tool and version.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolMetrics {
    pub tool: String,
    pub version: String,
    /// Calls that ran.
    pub calls: u64,
    /// Calls that were answered from the record.
    pub replays: u64,
    /// Calls that a gate refused.
    pub refusals: u64,
    /// Calls that took longer than the tool's latency budget.
    pub overruns: u64,
    pub retries: u64,
    /// By error type, refusals included.
    pub errors: BTreeMap<&'static str, u64>,
    /// In milliseconds; of the calls that ran.
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    /// Histogram: upper bounds in microseconds and counts, without empty buckets.
    pub latency: Vec<(u64, u64)>,
}

impl Default for Counters {
    fn default() -> Self {
        let zeros = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            calls: AtomicU64::new(0),
            replays: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            errors: zeros(ErrorKind::ALL.len()),
            latency: zeros(BUCKETS),
        }
    }
}

impl Counters {
    /// Counts a call that ended. Answers to confirmation requests are not calls.
    pub fn count(&self, end: End, error: Option<ErrorKind>, elapsed: Duration, is_slow: bool) {
        let counter = match end {
            End::Ran | End::Described => &self.calls,
            End::Replayed => &self.replays,
            End::Refused => &self.refusals,
            End::Approved | End::Rejected | End::Expired | End::Closed => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if end == End::Replayed {
            return;
        }
        if let Some(kind) = error
            && let Some(at) = ErrorKind::ALL.iter().position(|known| *known == kind)
        {
            self.errors[at].fetch_add(1, Ordering::Relaxed);
        }
        if end != End::Refused {
            self.latency[bucket(elapsed)].fetch_add(1, Ordering::Relaxed);
            self.overruns.fetch_add(u64::from(is_slow), Ordering::Relaxed);
        }
    }

    pub fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub fn metrics_for(&self, tool: &str, version: &str) -> Arc<Counters> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = all.get(tool).and_then(|versions| versions.get(version)) {
            return Arc::clone(counters);
        }
        drop(all);
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(tool.to_owned()).or_default().entry(version.to_owned()).or_default())
    }

    /// All tools that were called, by name and version.
    pub fn read(&self) -> Vec<ToolMetrics> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let versions = all.iter().flat_map(|(tool, versions)| versions.iter().map(move |one| (tool, one)));
        let mut rows: Vec<ToolMetrics> =
            versions.map(|(tool, (version, counters))| counters.read(tool, version)).collect();
        rows.sort_by(|a, b| (&a.tool, &a.version).cmp(&(&b.tool, &b.version)));
        rows
    }
}

impl Counters {
    fn read(&self, tool: &str, version: &str) -> ToolMetrics {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts: Vec<u64> = self.latency.iter().map(number).collect();
        let errors = ErrorKind::WORDS.iter().zip(&self.errors).map(|(word, count)| (*word, number(count)));
        let latency = counts.iter().enumerate().filter(|(_, count)| **count > 0);
        ToolMetrics {
            tool: tool.to_owned(),
            version: version.to_owned(),
            calls: number(&self.calls),
            replays: number(&self.replays),
            refusals: number(&self.refusals),
            overruns: number(&self.overruns),
            retries: number(&self.retries),
            errors: errors.filter(|(_, count)| *count > 0).collect(),
            p50: quantile(&counts, 0.5),
            p90: quantile(&counts, 0.9),
            p99: quantile(&counts, 0.99),
            latency: latency.map(|(at, count)| (upper_bound(at), *count)).collect(),
        }
    }
}

fn bucket(elapsed: Duration) -> usize {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    if micros < STEPS {
        return micros as usize;
    }
    let doubling = u64::from(micros.ilog2());
    // The three bits below the highest one select the step.
    let step = (micros >> (doubling - 3)) & (STEPS - 1);
    (((doubling - 2) * STEPS + step) as usize).min(BUCKETS - 1)
}

/// The upper bound of a bucket, in microseconds.
fn upper_bound(at: usize) -> u64 {
    let at = at as u64;
    if at < STEPS {
        return at;
    }
    let (doubling, step) = (at / STEPS + 2, at % STEPS);
    (((STEPS + step + 1) << (doubling - 3)) - 1).max(1)
}

/// In milliseconds.
fn quantile(counts: &[u64], share: f64) -> f64 {
    let total: u64 = counts.iter().sum();
    let wanted = (total as f64 * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    for (at, count) in counts.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            return upper_bound(at) as f64 / 1000.0;
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_within_the_bounds_of_its_bucket() {
        let mut last = 0;
        for micros in (0..5000).chain([1 << 20, (1 << 20) + 1, 123_456_789, u64::MAX / 1000]) {
            let at = bucket(Duration::from_micros(micros));
            assert!(at >= last && (upper_bound(at) >= micros || at == BUCKETS - 1), "{micros} in {at}");
            assert!(at == 0 || upper_bound(at - 1) < micros || at == BUCKETS - 1, "{micros} in {at}");
            last = at;
        }
    }

    #[test]
    fn quantiles_are_off_by_an_eighth_at_most() {
        let counters = Counters::default();
        for micros in 1..=1000 {
            counters.count(End::Ran, None, Duration::from_micros(micros), micros > 900);
        }
        counters.count(End::Refused, Some(ErrorKind::Validation), Duration::ZERO, false);
        counters.count(End::Replayed, None, Duration::ZERO, false);
        let read = counters.read("tool", "1.0.0");
        assert!((0.5..=0.57).contains(&read.p50) && (0.99..=1.12).contains(&read.p99), "{read:?}");
        assert_eq!((read.calls, read.refusals, read.replays, read.overruns), (1000, 1, 1, 100));
        assert_eq!(read.errors, BTreeMap::from([("VALIDATION", 1)]));
        assert_eq!(read.latency.iter().map(|(_, count)| count).sum::<u64>(), 1000);
    }
}

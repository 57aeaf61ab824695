//! Counters per tool and version: calls, errors by type, replays, refusals, overruns, latency.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use toolwright_contract::ErrorKind;

use crate::durations::Durations;
use crate::finish::ExecutionEnd;

/// Upper bounds of the buckets of [`ToolMetrics::durations`], in microseconds. The last bucket has no bound.
pub const DURATION_BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000, 5_000_000,
    30_000_000,
];

/// The numbers of all tools that were called, by name and version.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<Rows>);

type Rows = BTreeMap<String, BTreeMap<String, ToolMetrics>>;

/// The numbers of one tool and version.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// Calls that took longer than the tool's `latencyBudgetMs`.
    pub overruns: u64,
    /// Calls of retrieval tools that took longer than the soft limit of their mode.
    pub soft_limit_overruns: u64,
    pub retries: u64,
    /// By error type, refusals included.
    pub errors: BTreeMap<&'static str, u64>,
    /// In milliseconds; of the calls that ran.
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    /// The exact sum of those durations, and their average.
    pub sum_ms: f64,
    pub average_ms: f64,
    pub latency: Durations,
    /// The same calls, counted exactly in the buckets of [`DURATION_BOUNDS_US`] and one more.
    #[serde(skip)]
    pub durations: [u64; DURATION_BOUNDS_US.len() + 1],
    /// The exact sum of their durations, in microseconds.
    #[serde(skip)]
    pub duration_sum_us: u64,
}

/// The limits of time that a call has exceeded and still succeeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExceededLimits {
    /// The tool's `latencyBudgetMs`.
    pub latency_budget: bool,
    /// The mode's `retrieval_soft_limit_ms`.
    pub soft_limit: bool,
}

impl Metrics {
    /// Changes the numbers of a tool.
    pub fn update(&self, tool: &str, version: &str, change: impl FnOnce(&mut ToolMetrics)) {
        let mut rows = self.rows();
        if let Some(known) = rows.get_mut(tool).and_then(|versions| versions.get_mut(version)) {
            return change(known);
        }
        let (tool, version) = (tool.to_owned(), version.to_owned());
        let versions = rows.entry(tool.clone()).or_default();
        let new = ToolMetrics { tool, version: version.clone(), ..ToolMetrics::default() };
        change(versions.entry(version).or_insert(new));
    }

    /// All tools that were called, by name and version.
    pub fn read(&self) -> Vec<ToolMetrics> {
        self.rows().values().flat_map(BTreeMap::values).map(ToolMetrics::with_quantiles).collect()
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolMetrics {
    /// Counts a call that ended. Answers to confirmation requests are not calls.
    pub(crate) fn count(
        &mut self,
        end: ExecutionEnd,
        error: Option<ErrorKind>,
        elapsed: Duration,
        exceeded: ExceededLimits,
    ) {
        match end {
            ExecutionEnd::Ran | ExecutionEnd::Described => {
                self.calls += 1;
                self.overruns += u64::from(exceeded.latency_budget);
                self.soft_limit_overruns += u64::from(exceeded.soft_limit);
                self.latency.add(elapsed);
            }
            ExecutionEnd::Refused => self.refusals += 1,
            ExecutionEnd::Replayed => {
                self.replays += 1;
                return;
            }
            // The task is counted when it has run.
            ExecutionEnd::Queued
            | ExecutionEnd::Approved
            | ExecutionEnd::Rejected
            | ExecutionEnd::Expired
            | ExecutionEnd::Closed => return,
        }
        if let Some(kind) = error {
            *self.errors.entry(kind.as_str()).or_default() += 1;
        }
    }

    fn with_quantiles(&self) -> Self {
        let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| self.quantile(share));
        let sum_ms = self.duration_sum_us as f64 / 1e3;
        let measured = self.durations.iter().sum::<u64>();
        let average_ms = if measured == 0 { 0.0 } else { (sum_ms / measured as f64 * 1e3).round() / 1e3 };
        Self { p50, p90, p99, sum_ms, average_ms, ..self.clone() }
    }

    /// Adds the numbers of other calls. The quantiles are not computed.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.replays += other.replays;
        self.refusals += other.refusals;
        self.overruns += other.overruns;
        self.soft_limit_overruns += other.soft_limit_overruns;
        self.retries += other.retries;
        for (kind, count) in &other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.latency.merge(&other.latency);
    }

    /// Counts the duration of a call that ran exactly, for a monitoring system. The numbers of minutes leave it out.
    pub(crate) fn count_duration(&mut self, end: ExecutionEnd, elapsed: Duration) {
        if !matches!(end, ExecutionEnd::Ran | ExecutionEnd::Described) {
            return;
        }
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        // Compared as a duration, not in microseconds, which are rounded down: bounds are inclusive.
        let is_within = |bound: &u64| elapsed <= Duration::from_micros(*bound);
        let bucket = DURATION_BOUNDS_US.iter().position(is_within).unwrap_or(DURATION_BOUNDS_US.len());
        self.durations[bucket] += 1;
        self.duration_sum_us = self.duration_sum_us.saturating_add(micros);
    }

    /// The latency, in milliseconds, that this share of the calls has at most.
    pub fn quantile(&self, share: f64) -> f64 {
        self.latency.quantile(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_exactly() {
        let mut metrics = ToolMetrics::default();
        for nanos in [100_000, 100_001, 249_999, 7_000_000, 31_000_000_000] {
            metrics.count_duration(ExecutionEnd::Ran, Duration::from_nanos(nanos));
        }
        metrics.count_duration(ExecutionEnd::Refused, Duration::from_secs(1));
        let read = metrics.with_quantiles();
        assert_eq!((read.sum_ms, read.average_ms), (31_007.449, 6201.49));
        assert_eq!(ToolMetrics::default().with_quantiles().average_ms, 0.0);
        let mut expected = [0; DURATION_BOUNDS_US.len() + 1];
        (expected[0], expected[1], expected[6], expected[14]) = (1, 2, 1, 1);
        assert_eq!(metrics.durations, expected);
        assert_eq!(metrics.duration_sum_us, 100 + 100 + 249 + 7000 + 31_000_000);
    }

    #[test]
    fn quantiles_are_off_by_an_eighth_at_most() {
        let mut metrics = ToolMetrics::default();
        for micros in 1..=1000 {
            let exceeded = ExceededLimits { latency_budget: micros > 900, soft_limit: micros > 990 };
            metrics.count(ExecutionEnd::Ran, None, Duration::from_micros(micros), exceeded);
        }
        let none = ExceededLimits::default();
        metrics.count(ExecutionEnd::Refused, Some(ErrorKind::Validation), Duration::ZERO, none);
        metrics.count(ExecutionEnd::Replayed, None, Duration::ZERO, none);
        let read = metrics.with_quantiles();
        assert!((0.5..=0.57).contains(&read.p50) && (0.99..=1.12).contains(&read.p99), "{read:?}");
        assert_eq!((read.calls, read.refusals, read.replays), (1000, 1, 1));
        assert_eq!((read.overruns, read.soft_limit_overruns), (100, 10));
        assert_eq!(read.errors, BTreeMap::from([("VALIDATION", 1)]));
        assert_eq!(read.latency.iter().map(|(_, count)| count).sum::<u64>(), 1000);
    }
}

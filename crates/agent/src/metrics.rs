//! Counters of the agent: turns, steps, tokens, errors, and the time to the first token.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use toolwright_orchestrator::Orchestrator;

use crate::event::{TurnOutcome, Usage};
use crate::model::ModelErrorKind;

/// Upper bounds of the histogram's buckets, in milliseconds. Longer times are in the last one.
pub const FIRST_TOKEN_BOUNDS_MS: [u64; 12] =
    [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, u64::MAX];

/// The names of the agent's numbers in the orchestrator's minute series.
pub mod series {
    pub const INPUT_TOKENS: &str = "input tokens";
    pub const OUTPUT_TOKENS: &str = "output tokens";
    /// From a request to the first token of its response.
    pub const FIRST_TOKEN: &str = "first token";
    /// From the end of the user's speech to the first audio of the answer.
    pub const FIRST_AUDIO: &str = "first audio";
    /// From a call of a voice model to its result.
    pub const VOICE_CALL: &str = "voice call";
}

/// The agent's counters since its start.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMetrics {
    pub provider: String,
    pub model: String,
    /// Runs of turns, by how they ended: see [`TurnOutcome::as_str`].
    pub turns: BTreeMap<&'static str, u64>,
    /// Requests to the model.
    pub steps: u64,
    /// Failed requests, by [`ModelErrorKind::as_str`].
    pub errors: BTreeMap<&'static str, u64>,
    pub tokens: Usage,
    /// Number of responses by time to the first token: one bucket for each of [`FIRST_TOKEN_BOUNDS_MS`].
    pub first_token: [u64; FIRST_TOKEN_BOUNDS_MS.len()],
    /// The exact sum of these times, in microseconds.
    pub first_token_us_sum: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<AgentMetrics>);

impl Metrics {
    pub fn new(provider: &str, model: &str) -> Self {
        let (provider, model) = (provider.to_owned(), model.to_owned());
        Self(Mutex::new(AgentMetrics { provider, model, ..AgentMetrics::default() }))
    }

    pub fn read(&self) -> AgentMetrics {
        self.lock().clone()
    }

    pub fn count_turn(&self, outcome: &TurnOutcome) {
        *self.lock().turns.entry(outcome.as_str()).or_default() += 1;
    }

    pub fn count_request(
        &self,
        first_token: Option<Duration>,
        usage: Option<Usage>,
        error: Option<ModelErrorKind>,
    ) {
        let mut metrics = self.lock();
        metrics.steps += 1;
        metrics.tokens = metrics.tokens + usage.unwrap_or_default();
        if let Some(kind) = error {
            *metrics.errors.entry(kind.as_str()).or_default() += 1;
        }
        if let Some(elapsed) = first_token {
            // Compared as a duration, not in milliseconds, which are rounded down: bounds are inclusive.
            let bucket =
                FIRST_TOKEN_BOUNDS_MS.partition_point(|bound| Duration::from_millis(*bound) < elapsed);
            let last = metrics.first_token.len() - 1;
            metrics.first_token[bucket.min(last)] += 1;
            let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
            metrics.first_token_us_sum = metrics.first_token_us_sum.saturating_add(micros);
        }
    }

    /// Counts a request in the orchestrator's minute series.
    pub fn count_minute(orchestrator: &Orchestrator, first_token: Option<Duration>, usage: Option<Usage>) {
        if let Some(usage) = usage {
            orchestrator.count(series::INPUT_TOKENS, usage.input_tokens);
            orchestrator.count(series::OUTPUT_TOKENS, usage.output_tokens);
        }
        if let Some(elapsed) = first_token {
            orchestrator.measure(series::FIRST_TOKEN, elapsed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, AgentMetrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_the_first_token_is_counted_exactly_and_bounds_are_inclusive() {
        let metrics = Metrics::new("provider", "model");
        for micros in [9_999, 10_000, 10_900, 25_001, 40_000_000] {
            metrics.count_request(Some(Duration::from_micros(micros)), None, None);
        }
        let read = metrics.read();
        assert_eq!(read.first_token, [2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(read.first_token_us_sum, 9_999 + 10_000 + 10_900 + 25_001 + 40_000_000);
    }
}

//! Counters of voice sessions. Received audio does not prove that a session works, so its level is measured too.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper bounds of the histograms of durations, in microseconds. Longer durations are in the last bucket.
pub const DURATION_BOUNDS_US: [u64; 16] = [
    50,
    100,
    250,
    500,
    1000,
    2500,
    5000,
    10_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    10_000_000,
    u64::MAX,
];
/// Upper bounds of the histogram of levels, in dB below full scale.
pub const LEVEL_BOUNDS_DB: [f64; 6] = [-60.0, -50.0, -40.0, -30.0, -20.0, f64::INFINITY];
/// Turns with a lower level count as silent.
const SILENT_DB: f64 = -60.0;

/// A histogram: the count of each bucket, and the sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Histogram<const N: usize> {
    pub counts: [u64; N],
    pub sum: f64,
}

/// The counters since the start.
#[derive(Debug, Clone, PartialEq)]
pub struct VoiceMetrics {
    pub provider: String,
    pub model: String,
    /// Number of running sessions.
    pub running: u64,
    pub started: u64,
    /// By [`super::EndReason::as_str`].
    pub ended: BTreeMap<&'static str, u64>,
    /// From the end of the user's speech to the first audio of the answer.
    pub first_audio: Histogram<16>,
    /// From a call to its result.
    pub tool_time: Histogram<16>,
    /// The bridge's own processing time of an audio frame, in either direction.
    pub frame_time: Histogram<16>,
    /// The level of the audio of each turn.
    pub output_level: Histogram<6>,
    pub turns: u64,
    /// Turns in which the model neither spoke nor called a tool.
    pub empty_turns: u64,
    /// Turns with inaudible audio.
    pub silent_turns: u64,
    pub interruptions: u64,
    pub reconnects: u64,
    pub failed_reconnects: u64,
    pub resumes: u64,
    pub fillers: u64,
    pub dropped_frames: u64,
    /// Spoken answers, by their meaning.
    pub spoken_answers: BTreeMap<&'static str, u64>,
}

#[derive(Debug)]
pub(crate) struct Metrics(Mutex<VoiceMetrics>);

impl Metrics {
    pub fn new(provider: &str, model: &str) -> Self {
        Self(Mutex::new(VoiceMetrics {
            provider: provider.to_owned(),
            model: model.to_owned(),
            running: 0,
            started: 0,
            ended: BTreeMap::new(),
            first_audio: Histogram { counts: [0; 16], sum: 0.0 },
            tool_time: Histogram { counts: [0; 16], sum: 0.0 },
            frame_time: Histogram { counts: [0; 16], sum: 0.0 },
            output_level: Histogram { counts: [0; 6], sum: 0.0 },
            turns: 0,
            empty_turns: 0,
            silent_turns: 0,
            interruptions: 0,
            reconnects: 0,
            failed_reconnects: 0,
            resumes: 0,
            fillers: 0,
            dropped_frames: 0,
            spoken_answers: BTreeMap::new(),
        }))
    }

    pub fn read(&self) -> VoiceMetrics {
        self.lock_state().clone()
    }

    /// Changes the counters.
    pub fn count(&self, change: impl FnOnce(&mut VoiceMetrics)) {
        change(&mut self.lock_state());
    }

    /// Counts a turn of the model, with the level of its audio, if any.
    pub fn count_turn(&self, level: Option<f64>, is_empty: bool) {
        let mut metrics = self.lock_state();
        metrics.turns += 1;
        metrics.empty_turns += u64::from(is_empty);
        if let Some(level) = level {
            let decibels = 20.0 * level.max(1e-6).log10();
            metrics.silent_turns += u64::from(decibels < SILENT_DB);
            metrics.output_level.add(decibels, LEVEL_BOUNDS_DB.partition_point(|bound| *bound < decibels));
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, VoiceMetrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const N: usize> Histogram<N> {
    fn add(&mut self, value: f64, bucket: usize) {
        self.counts[bucket.min(N - 1)] += 1;
        self.sum += value;
    }
}

impl Histogram<16> {
    /// Adds a duration; the sum is in seconds.
    pub(crate) fn add_duration(&mut self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.add(duration.as_secs_f64(), DURATION_BOUNDS_US.partition_point(|bound| *bound < micros));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_nobody_can_hear_is_counted() {
        let metrics = Metrics::new("gemini-live", "m");
        metrics.count_turn(Some(0.2), false);
        metrics.count_turn(Some(0.0), false);
        metrics.count_turn(None, true);
        metrics.count(|metrics| metrics.frame_time.add_duration(Duration::from_micros(70)));
        let read = metrics.read();
        assert_eq!((read.turns, read.silent_turns, read.empty_turns), (3, 1, 1));
        assert_eq!(read.output_level.counts, [1, 0, 0, 0, 0, 1]);
        assert_eq!(read.frame_time.counts[1], 1);
    }
}

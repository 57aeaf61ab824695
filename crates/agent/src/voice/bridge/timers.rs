//! The deadlines of a session.

use tokio::time::{Duration, Instant};

use super::Bridge;
use super::ending::Ending;
use crate::voice::client::EndReason;
use crate::voice::voice_settings::VoiceOptions;

/// A pause in the user's transcript after which the utterance counts as complete.
const SETTLE: Duration = Duration::from_millis(700);
/// How often the session's record and its open questions are read, because another process may change them.
const RECORD_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Timers {
    idle: Duration,
    pub last_activity: Instant,
    max_at: Instant,
    client_gone_at: Option<Instant>,
    /// When the session's record and its open questions are read next.
    pub record_at: Instant,
    /// When an interrupted item is truncated at the model.
    pub truncate_at: Option<Instant>,
    pub reconnect_at: Option<Instant>,
}

impl Timers {
    pub fn new(options: &VoiceOptions) -> Self {
        let now = Instant::now();
        Self {
            idle: options.idle,
            last_activity: now,
            max_at: now + options.max,
            client_gone_at: None,
            record_at: now + RECORD_INTERVAL,
            truncate_at: None,
            reconnect_at: None,
        }
    }

    pub fn activity(&mut self) {
        self.last_activity = Instant::now();
    }

    pub const fn client_is_back(&mut self) {
        self.client_gone_at = None;
    }

    pub fn client_is_gone(&mut self, grace: Duration) {
        self.client_gone_at = Some(Instant::now() + grace);
    }
}

impl Bridge {
    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Instant {
        let timers = &self.timers;
        let settle = self.turn.user_piece_at.map(|at| at + SETTLE);
        let deadlines = [
            timers.client_gone_at,
            timers.truncate_at,
            timers.reconnect_at,
            settle,
            self.filler_at(),
            self.ending.as_ref().map(Ending::deadline),
            self.delegations.deadline(),
            self.reconnect.going_away_at,
        ];
        let first = deadlines.into_iter().flatten().min();
        let standing = timers.max_at.min(timers.last_activity + timers.idle).min(timers.record_at);
        first.map_or(standing, |first| first.min(standing))
    }

    /// Runs expired timers.
    pub(super) async fn deadline(&mut self) {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if now >= self.timers.max_at {
            return self.finish(EndReason::MaxDuration).await;
        }
        if is_due(self.timers.client_gone_at) {
            self.end = Some(EndReason::Abandoned);
            return;
        }
        if is_due(self.ending.as_ref().map(Ending::deadline)) {
            return self.farewell_over().await;
        }
        if now >= self.timers.last_activity + self.timers.idle {
            if self.calls.is_empty() && self.delegations.is_idle() {
                return self.finish(EndReason::Idle).await;
            }
            self.timers.activity();
        }
        if now >= self.timers.record_at {
            self.timers.record_at = now + RECORD_INTERVAL;
            self.refresh().await;
            self.read_missed_results().await;
        }
        if is_due(self.timers.truncate_at) {
            self.truncate();
        }
        if is_due(self.turn.user_piece_at.map(|at| at + SETTLE)) {
            self.user_utterance_complete().await;
            self.flush_notes();
        }
        if is_due(self.filler_at()) {
            self.say_filler();
        }
        if is_due(self.timers.reconnect_at) {
            self.timers.reconnect_at = None;
            self.begin_connecting().await;
        }
        if is_due(self.reconnect.going_away_at) {
            self.replace_connection("the provider ends the connection").await;
        }
        if is_due(self.delegations.deadline()) {
            self.start_delegation().await;
        }
    }
}

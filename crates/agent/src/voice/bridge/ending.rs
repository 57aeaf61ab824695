//! How a session ends: by the client, by a tool after the turn or after the farewell, by a block, or by a limit. Each
//! way has a deadline.

use serde_json::Value;
use tokio::time::{Duration, Instant};
use toolwright_orchestrator::session_state::Event as SessionEvent;
use toolwright_orchestrator::store::SessionStatus;

use super::Bridge;
use crate::voice::client::{ClientOutput, CloseReason, EndReason};

/// Extra time, after the length of the farewell, until a client without playback reports counts as having played it.
const PLAYBACK_MARGIN: Duration = Duration::from_secs(2);

/// The end of a session that a tool has requested.
#[derive(Debug)]
pub(super) struct Ending {
    after: EndCondition,
    /// The session ends at this time at the latest.
    deadline: Instant,
    /// `ending` was sent to the client.
    is_announced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndCondition {
    CurrentTurn,
    Farewell,
}

impl Ending {
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Whether the farewell has not been played yet.
    pub fn awaits_farewell(&self) -> bool {
        self.after == EndCondition::Farewell && !self.is_announced
    }
}

impl Bridge {
    /// Applies the session changes of calls: suppressed output, and the end of the session.
    pub(super) async fn refresh(&mut self) {
        let session = match self.orchestrator.session(&self.session.id).await {
            Ok(Some(session)) => session,
            Ok(None) => return self.finish(EndReason::Elsewhere).await,
            Err(error) => return tracing::error!("could not read a voice session: {error}"),
        };
        let is_true = |name: &str| session.state.get(name) == Some(&Value::Bool(true));
        let (audio, transcript) = (is_true("suppressAudio"), is_true("suppressTranscript"));
        if (audio, transcript) != (self.suppress_audio, self.suppress_transcript) {
            if audio && !self.suppress_audio {
                // An item whose start was sent gets its end.
                self.end_item();
            }
            (self.suppress_audio, self.suppress_transcript) = (audio, transcript);
            self.send_to_client(ClientOutput::Suppressed { audio, transcript });
            // A read-back that was not audible is requested again.
            self.repeat_question();
            self.flush_notes();
        }
        if session.is_ending() && self.ending.is_none() {
            let pending = session.pending_end().cloned().unwrap_or_default();
            let after = match pending.get("after").and_then(Value::as_str) {
                Some("farewell_spoken") => EndCondition::Farewell,
                _ => EndCondition::CurrentTurn,
            };
            let end_by = pending.get("endBy").and_then(Value::as_i64).unwrap_or(i64::MAX);
            let left = u64::try_from(end_by.saturating_sub(self.orchestrator.now())).unwrap_or(0);
            let left = Duration::from_millis(left).min(self.shared.options.farewell);
            self.ending = Some(Ending { after, deadline: Instant::now() + left, is_announced: false });
        } else if session.status != SessionStatus::Active && self.ending.is_none() {
            self.finish(EndReason::Elsewhere).await;
        }
    }

    /// A tool has blocked the client. The store already refuses its calls; the client is informed, and its input is
    /// ignored.
    pub(super) async fn blocked(&mut self, message: &Value) {
        let until = message.get("timeoutUntil").and_then(Value::as_f64).unwrap_or_default() as i64;
        let left_ms = (until - self.orchestrator.now()).max(0);
        let text = message.get("farewellMessage").and_then(Value::as_str).map(str::to_owned);
        self.is_blocked = true;
        self.send_to_client(ClientOutput::Timeout { until, left_ms, message: text });
    }

    fn end_reason(&self) -> EndReason {
        if self.is_blocked { EndReason::Blocked } else { EndReason::Tool }
    }

    /// The model has ended its turn, which may have been the last one.
    pub(super) async fn turn_may_end_session(&mut self, has_audio: bool) {
        // The model speaks again when it has the results of its calls.
        if self.ending.is_none() || self.calls.blocks_model() {
            return;
        }
        let (reason, play_end) = (self.end_reason(), self.speech.play_end());
        let Some(ending) = &mut self.ending else { return };
        match ending.after {
            EndCondition::CurrentTurn => self.finish(reason).await,
            EndCondition::Farewell if has_audio && !ending.is_announced => {
                ending.is_announced = true;
                let heard = play_end.unwrap_or_else(Instant::now).max(Instant::now()) + PLAYBACK_MARGIN;
                ending.deadline = ending.deadline.min(heard);
                self.send_to_client(ClientOutput::Ending { reason, has_farewell: true });
            }
            EndCondition::Farewell => {}
        }
    }

    /// The client has played everything that was sent before `ending`.
    pub(super) async fn farewell_played(&mut self) {
        if self.ending.as_ref().is_some_and(|ending| ending.is_announced) {
            self.farewell_over().await;
        }
    }

    /// The last audio was played to its end.
    pub(super) async fn farewell_item_played(&mut self) {
        self.farewell_played().await;
    }

    /// The farewell was played, or the client can no longer report it.
    pub(super) async fn farewell_over(&mut self) {
        if let Err(error) =
            self.orchestrator.apply_event(&self.session.id, SessionEvent::FarewellSpoken).await
        {
            tracing::error!(session = self.session.id, "could not record the end of a session: {error}");
        }
        self.finish(self.end_reason()).await;
    }

    /// Ends the session: stops the loop, then [`Self::close`] runs.
    pub(super) async fn finish(&mut self, reason: EndReason) {
        if self.end.is_some() {
            return;
        }
        let is_announced = self.ending.as_ref().is_some_and(|ending| ending.is_announced);
        if !is_announced {
            self.send_to_client(ClientOutput::Ending { reason, has_farewell: false });
        }
        self.end = Some(reason);
        // The client may continue a session whose model has disconnected.
        if reason == EndReason::Provider {
            return;
        }
        if let Err(error) = self.orchestrator.end_session(&self.session.id).await {
            tracing::error!(session = self.session.id, "could not end a voice session: {error}");
        }
    }

    /// After the loop: answers every call while the model is still connected, sends the end to the client last, and
    /// completes the log.
    pub(super) async fn close(mut self) {
        let reason = self.end.unwrap_or(EndReason::Abandoned);
        // The client's input is ignored from here on.
        self.input = None;
        self.end_item();
        self.end_assistant_text();
        self.stop_delegation().await;
        self.finish_calls().await;
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
        self.end_logged_turn().await;
        self.orchestrator.detach_client(&self.session.id, &self.client);
        match reason {
            // The session continues elsewhere or later, so it has not ended.
            EndReason::Shutdown => self.send_to_client(ClientOutput::Closed(CloseReason::Shutdown)),
            EndReason::Abandoned => {}
            reason => {
                self.send_to_client(ClientOutput::Ended { reason });
                self.send_to_client(ClientOutput::Closed(CloseReason::Ended));
            }
        }
        self.shared.metrics.count(|metrics| {
            metrics.running -= 1;
            *metrics.ended.entry(reason.as_str()).or_default() += 1;
        });
        self.shared.remove(&self.session.id);
    }
}

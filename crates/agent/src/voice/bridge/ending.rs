//! How a session ends: by the client, by a tool after the turn or after the farewell, by a block, or by a limit. Every end
//! has a deadline of its own.

use serde_json::Value;
use tokio::time::{Duration, Instant};
use toolwright_orchestrator::state::Event as SessionEvent;
use toolwright_orchestrator::store::SessionStatus;

use super::Bridge;
use crate::voice::client::{ClientOutput, CloseReason, EndReason};

/// How long after the farewell has been played, by its length, a client that reports nothing is believed to have heard it.
const PLAYBACK_MARGIN: Duration = Duration::from_secs(2);

/// A session that a tool ends.
#[derive(Debug)]
pub(super) struct Ending {
    after: EndCondition,
    /// The session ends by then in any case.
    deadline: Instant,
    /// The client was told that the farewell was its last audio.
    is_told: bool,
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

    /// The farewell is still to be heard.
    pub fn awaits_farewell(&self) -> bool {
        self.after == EndCondition::Farewell && !self.is_told
    }
}

impl Bridge {
    /// Reads what calls have changed in the session: suppression, its end.
    pub(super) async fn refresh(&mut self) {
        let session = match self.orchestrator.session(&self.session.id).await {
            Ok(Some(session)) => session,
            Ok(None) => return self.finish(EndReason::Elsewhere).await,
            Err(error) => return tracing::error!("could not read a voice session: {error}"),
        };
        let is_true = |name: &str| session.state.get(name) == Some(&Value::Bool(true));
        let (audio, transcript) = (is_true("suppressAudio"), is_true("suppressTranscript"));
        if (audio, transcript) != (self.suppress_audio, self.suppress_transcript) {
            (self.suppress_audio, self.suppress_transcript) = (audio, transcript);
            self.send_to_client(ClientOutput::Suppressed { audio, transcript });
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
            self.ending = Some(Ending { after, deadline: Instant::now() + left, is_told: false });
        } else if session.status != SessionStatus::Active && self.ending.is_none() {
            self.finish(EndReason::Elsewhere).await;
        }
    }

    /// A tool has blocked the client. The store refuses it already; the client is told, and is not listened to.
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

    /// The model has ended its turn: that may have been the last.
    pub(super) async fn turn_may_end_session(&mut self, has_audio: bool) {
        // The model speaks again when it has the results of its calls.
        if self.ending.is_none() || self.calls.blocks_model() {
            return;
        }
        let (reason, play_end) = (self.end_reason(), self.speech.play_end());
        let Some(ending) = &mut self.ending else { return };
        match ending.after {
            EndCondition::CurrentTurn => self.finish(reason).await,
            EndCondition::Farewell if has_audio && !ending.is_told => {
                ending.is_told = true;
                let heard = play_end.unwrap_or_else(Instant::now).max(Instant::now()) + PLAYBACK_MARGIN;
                ending.deadline = ending.deadline.min(heard);
                self.send_to_client(ClientOutput::Ending { reason, has_farewell: true });
            }
            EndCondition::Farewell => {}
        }
    }

    /// The client has played everything that came before `ending`.
    pub(super) async fn farewell_played(&mut self) {
        if self.ending.as_ref().is_some_and(|ending| ending.is_told) {
            self.farewell_over().await;
        }
    }

    /// The last audio has been played to its end.
    pub(super) async fn farewell_item_played(&mut self) {
        self.farewell_played().await;
    }

    /// The farewell was heard, or nobody can tell any more.
    pub(super) async fn farewell_over(&mut self) {
        if let Err(error) = self.orchestrator.notice(&self.session.id, SessionEvent::FarewellSpoken).await {
            tracing::error!(session = self.session.id, "could not record the end of a session: {error}");
        }
        self.finish(self.end_reason()).await;
    }

    /// Ends the session: the loop stops, and [`Self::close`] does the rest.
    pub(super) async fn finish(&mut self, reason: EndReason) {
        if self.end.is_some() {
            return;
        }
        let is_told = self.ending.as_ref().is_some_and(|ending| ending.is_told);
        if !is_told {
            self.send_to_client(ClientOutput::Ending { reason, has_farewell: false });
        }
        self.end = Some(reason);
        // A session that its model has left may be continued.
        if reason == EndReason::Provider {
            return;
        }
        if let Err(error) = self.orchestrator.end_session(&self.session.id).await {
            tracing::error!(session = self.session.id, "could not end a voice session: {error}");
        }
    }

    /// After the loop: every call is answered while the model is still connected, the client hears the end last, the log
    /// is completed.
    pub(super) async fn close(mut self) {
        let reason = self.end.unwrap_or(EndReason::Abandoned);
        // The client is not listened to any more.
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
            // It continues elsewhere or later, so it has not ended.
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

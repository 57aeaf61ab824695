//! Replaces the connection to the model: before it ends, and when it is lost. The new connection gets the
//! conversation.

use std::collections::VecDeque;

use futures_util::FutureExt as _;
use tokio::time::{Duration, Instant};

use super::Bridge;
use crate::voice::client::{ClientOutput, EndReason};
use crate::voice::transport::{Command, ConnectError, Connection, ToolUse};

/// Maximum number of attempts to connect before the session ends.
const MAX_ATTEMPTS: u32 = 6;
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// How long before its announced end a connection is replaced.
const MARGIN: Duration = Duration::from_secs(1);
/// Maximum number of buffered audio bytes while there is no connection: four seconds at 24 kHz.
const MAX_KEPT_BYTES: usize = 24_000 * 2 * 4;

#[derive(Debug, Default)]
pub(super) struct Reconnect {
    /// The provider's resumption handle.
    pub handle: Option<String>,
    /// The provider has announced the end of the connection.
    pub going_away_at: Option<Instant>,
    is_going_away: bool,
    attempts: u32,
    audio: VecDeque<Vec<u8>>,
    audio_bytes: usize,
    pub has_warned: bool,
    /// When the user last spoke.
    pub last_speech: Option<Instant>,
}

impl Reconnect {
    /// Buffers audio for the next connection. Returns the number of dropped frames.
    pub fn keep_audio(&mut self, pcm: Vec<u8>) -> usize {
        self.audio_bytes += pcm.len();
        self.audio.push_back(pcm);
        let mut dropped = 0;
        while self.audio_bytes > MAX_KEPT_BYTES {
            let Some(oldest) = self.audio.pop_front() else { break };
            self.audio_bytes -= oldest.len();
            dropped += 1;
        }
        dropped
    }
}

impl Bridge {
    /// The provider has announced the end of the connection: it is replaced at the next pause.
    pub(super) async fn going_away(&mut self, left: Duration) {
        self.reconnect.is_going_away = true;
        self.reconnect.going_away_at = Some(Instant::now() + left.saturating_sub(MARGIN));
    }

    pub(super) async fn reconnect_when_idle(&mut self) {
        if self.reconnect.is_going_away && !self.calls.blocks_model() && self.end.is_none() {
            self.replace_connection("the provider ends the connection").await;
        }
    }

    pub(super) async fn connection_lost(&mut self, reason: &str) {
        tracing::info!(session = self.session.id, "the connection to the voice model has ended: {reason}");
        // The model has ended the session for good.
        if reason == "content" {
            return self.finish(EndReason::Provider).await;
        }
        self.replace_connection(reason).await;
    }

    pub(super) async fn replace_connection(&mut self, reason: &str) {
        if self.connecting.is_some() || self.end.is_some() {
            return;
        }
        tracing::info!(session = self.session.id, "replacing the connection to the voice model: {reason}");
        if let Some(old) = self.connection.take() {
            old.close();
        }
        self.reconnect.is_going_away = false;
        self.reconnect.going_away_at = None;
        self.notes.extend(self.calls.new_connection());
        self.delegations.new_connection();
        self.end_item();
        self.speech.is_cut = false;
        self.end_assistant_text();
        self.send_to_client(ClientOutput::Reconnecting);
        self.shared.metrics.count(|metrics| metrics.reconnects += 1);
        self.begin_connecting().await;
    }

    /// Begins to connect; the session continues meanwhile.
    pub(super) async fn begin_connecting(&mut self) {
        self.reconnect.attempts += 1;
        // Without a handle, the words so far belong to the history that the new connection gets.
        if self.reconnect.handle.is_none() && self.turn.user_piece_at.is_none() && !self.turn.is_open {
            self.end_logged_turn().await;
        }
        let (shared, session, handle) =
            (self.shared.clone(), self.session.clone(), self.reconnect.handle.clone());
        let language = self.format.language.clone();
        let connect = async move { shared.connect(&session, language, handle).await };
        self.connecting = Some(connect.boxed());
    }

    pub(super) async fn connected(&mut self, result: Result<Connection, ConnectError>) {
        let mut connection = match result {
            Ok(connection) => connection,
            Err(error) => return self.connect_failed(&error).await,
        };
        self.reconnect.attempts = 0;
        for pcm in std::mem::take(&mut self.reconnect.audio) {
            connection.audio(&pcm);
        }
        self.reconnect.audio_bytes = 0;
        if self.is_muted {
            connection.send(Command::Muted(true));
        }
        self.connection = Some(connection);
        self.send_to_client(ClientOutput::Reconnected);
        self.answer_open_turn();
        self.flush_notes();
    }

    /// The last utterance was not answered before the reconnect: ask the new connection to answer it.
    fn answer_open_turn(&mut self) {
        let is_unanswered = self.turn.is_open && !self.turn.has_audio && !self.turn.has_calls;
        let text = self.turn.user_text.trim().to_owned();
        if is_unanswered && !text.is_empty() && self.shared.options.provider.tools == ToolUse::Calls {
            self.send(Command::Text(text));
        }
    }

    async fn connect_failed(&mut self, error: &ConnectError) {
        let session = &self.session.id;
        tracing::warn!(session, "could not connect to the voice model: {error}");
        self.shared.metrics.count(|metrics| metrics.failed_reconnects += 1);
        // The handle may have expired: connect without it, and send the history.
        if error.is_refused && self.reconnect.handle.take().is_some() {
            return self.begin_connecting().await;
        }
        let is_hopeless = error.is_refused && self.reconnect.attempts >= 2;
        if is_hopeless || self.reconnect.attempts >= MAX_ATTEMPTS {
            return self.finish(EndReason::Provider).await;
        }
        let delay = FIRST_DELAY * 2_u32.saturating_pow(self.reconnect.attempts.saturating_sub(1));
        self.timers.reconnect_at = Some(Instant::now() + delay);
    }
}

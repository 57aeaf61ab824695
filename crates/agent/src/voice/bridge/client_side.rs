//! Handles the messages and the audio of the client.

use std::time::Instant as SystemInstant;

use super::{Bridge, TurnState};
use crate::voice::client::{ClientInput, ClientOutput, DecidedBy, EndReason};
use crate::voice::pcm::level;
use crate::voice::transport::{Command, ToolUse};

/// Microphone audio above this level counts as speech, for idle time and latency.
const SPEECH_LEVEL: f64 = 0.01;

impl Bridge {
    pub(super) async fn client_input(&mut self, input: ClientInput) {
        match input {
            ClientInput::Audio(pcm) => self.client_audio(pcm),
            ClientInput::Played { item, ms } => self.client_played(&item, ms).await,
            ClientInput::FarewellPlayed => self.farewell_played().await,
            ClientInput::Interrupt => self.client_interrupts(),
            ClientInput::Confirm { id, approved } => self.client_confirms(&id, approved).await,
            ClientInput::Text(text) => self.client_text(text).await,
            ClientInput::Mute(is_muted) => self.mute(is_muted),
            ClientInput::Stop => self.finish(EndReason::Stopped).await,
        }
    }

    fn client_audio(&mut self, pcm: Vec<u8>) {
        if self.is_muted || self.is_blocked {
            return;
        }
        let started = SystemInstant::now();
        if level(&pcm) >= SPEECH_LEVEL {
            self.timers.activity();
            self.reconnect.last_speech = Some(tokio::time::Instant::now());
        }
        let pcm = self.to_model.process(pcm);
        if pcm.is_empty() {
            return;
        }
        let dropped = match &mut self.connection {
            Some(connection) => connection.audio(&pcm),
            None => self.reconnect.keep_audio(pcm),
        };
        self.shared.metrics.count(|metrics| {
            metrics.frame_time.add_duration(started.elapsed());
            metrics.dropped_frames += dropped as u64;
        });
        if dropped > 0 && !self.reconnect.has_warned {
            self.reconnect.has_warned = true;
            let message = "The model takes audio too slowly: old audio was dropped.".to_owned();
            self.send_to_client(ClientOutput::Warning { code: "audio_dropped", message });
        }
    }

    async fn client_played(&mut self, item: &str, ms: u64) {
        let is_whole = self.speech.played(item, ms);
        let is_interrupted =
            self.speech.item.as_ref().is_some_and(|known| known.id == item && known.is_interrupted);
        if is_interrupted && self.timers.truncate_at.is_some() {
            self.truncate();
        }
        if is_whole {
            self.speech_played();
            self.farewell_item_played().await;
        }
    }

    /// Answered with a button: the rest of the model's turn is not played.
    fn client_interrupts(&mut self) {
        if self.speech.item.as_ref().is_some_and(|item| !item.is_ended) {
            self.speech.is_cut = true;
        }
        self.interrupt();
    }

    async fn client_confirms(&mut self, id: &str, approved: bool) {
        if self.question(id).is_none() {
            let message = format!("No confirmation `{}` is open.", id.chars().take(100).collect::<String>());
            return self.send_to_client(ClientOutput::Warning { code: "unknown_confirmation", message });
        }
        self.timers.activity();
        self.decide(id, approved, DecidedBy::Screen).await;
    }

    async fn client_text(&mut self, text: String) {
        if self.is_blocked {
            return;
        }
        self.timers.activity();
        self.interrupt();
        self.begin_turn().await;
        self.turn.user_text.clone_from(&text);
        self.log.user(&text);
        self.tell_user_text(&text);
        self.reconnect.last_speech = Some(tokio::time::Instant::now());
        if self.shared.options.provider.tools == ToolUse::Delegates {
            return self.delegate_text(text).await;
        }
        self.send(Command::Text(text));
    }

    fn mute(&mut self, is_muted: bool) {
        if self.is_muted != is_muted {
            self.is_muted = is_muted;
            self.send(Command::Muted(is_muted));
        }
    }

    /// Sends a command to the model, if it is connected.
    pub(super) fn send(&mut self, command: Command) {
        if let Some(connection) = &mut self.connection {
            connection.send(command);
        }
    }

    /// New input of the user: begins a turn with a new budget.
    pub(super) async fn begin_turn(&mut self) {
        if self.turn.is_open {
            return;
        }
        self.end_assistant_text();
        self.end_logged_turn().await;
        self.turn = TurnState { is_open: true, ..TurnState::default() };
        if self.shared.options.provider.tools == ToolUse::Delegates {
            // The text agent begins the turn of a delegation.
            return;
        }
        match self.orchestrator.begin_turn(&self.session.id).await {
            Ok(turn) => {
                if let Some(message) = turn.message {
                    self.send_to_client(ClientOutput::Message { text: Some(message.clone()), data: None });
                    self.notes.push(format!("[A tool has left this message for the user: {message}]"));
                }
            }
            Err(error) => tracing::error!(session = self.session.id, "could not begin a turn: {error}"),
        }
    }
}

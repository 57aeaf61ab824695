//! Handles the model's events.

use std::time::Instant as SystemInstant;

use tokio::time::{Duration, Instant};

use super::Bridge;
use super::speech::Item;
use crate::metrics::series;
use crate::voice::client::{ClientOutput, Speaker};
use crate::voice::transport::{Command, Event, ToolUse};

/// How long to wait for the client's playback position after an interruption.
const PLAYED_TIMEOUT: Duration = Duration::from_millis(300);
/// Maximum size of an audio frame to the client.
const MAX_FRAME_BYTES: usize = 32 << 10;
/// Maximum length of the transcript of one utterance.
const MAX_UTTERANCE_BYTES: usize = 16 << 10;

impl Bridge {
    pub(super) async fn model_event(&mut self, event: Event) {
        match event {
            Event::Ready => {}
            Event::Audio { item, pcm } => self.model_audio(item, pcm),
            Event::SpeechStarted => self.speech_started().await,
            Event::UserText { text, is_final } => self.user_text(&text, is_final).await,
            Event::AssistantText(text) => self.assistant_text(&text),
            Event::Interrupted => {
                self.turn.is_interrupted = true;
                self.interrupt();
            }
            Event::Calls(calls) => self.model_calls(calls).await,
            Event::CallsCancelled(ids) => self.calls_cancelled(&ids),
            Event::TurnComplete => self.turn_complete().await,
            Event::Delegated { id } => self.delegated(id),
            Event::GoingAway { left } => self.going_away(left).await,
            Event::Resumable(handle) => {
                if handle.is_some() {
                    self.reconnect.handle = handle;
                }
            }
            Event::Warning(detail) => {
                tracing::warn!(session = self.session.id, "the voice model reports: {detail}");
                let message = "The voice model reported an error and goes on.".to_owned();
                self.send_to_client(ClientOutput::Warning { code: "provider_error", message });
            }
            Event::Closed { reason } => self.connection_lost(&reason).await,
        }
    }

    fn model_audio(&mut self, provider_id: Option<String>, pcm: Vec<u8>) {
        let started = SystemInstant::now();
        self.timers.activity();
        self.speech.measure(&pcm);
        if !std::mem::replace(&mut self.turn.has_audio, true)
            && let Some(spoken) = self.reconnect.last_speech.take()
        {
            self.shared.metrics.count(|metrics| metrics.first_audio.add_duration(spoken.elapsed()));
            self.orchestrator.measure(series::FIRST_AUDIO, spoken.elapsed());
        }
        if self.speech.is_cut {
            return;
        }
        let is_other = |item: &Item| {
            item.is_ended || item.is_interrupted || (provider_id.is_some() && item.provider_id != provider_id)
        };
        // Audio of an interrupted response.
        let is_late = |item: &Item| {
            item.is_interrupted && item.provider_id.is_some() && item.provider_id == provider_id
        };
        if self.speech.item.as_ref().is_some_and(is_late) {
            return;
        }
        if self.speech.item.as_ref().is_none_or(is_other) {
            self.end_item();
            self.speech.item = Some(Item::new(Self::new_item_id(), provider_id));
        }
        let pcm = self.to_client.process(pcm);
        self.send_audio(&pcm);
        self.shared.metrics.count(|metrics| metrics.frame_time.add_duration(started.elapsed()));
    }

    /// Sends audio of the current item, unless it is suppressed.
    fn send_audio(&mut self, pcm: &[u8]) {
        let is_suppressed = self.is_audio_suppressed();
        let Some(item) = self.speech.item.as_mut().filter(|_| !pcm.is_empty()) else { return };
        if is_suppressed {
            item.is_withheld = true;
            return;
        }
        item.bytes += pcm.len() as u64;
        if !std::mem::replace(&mut item.is_announced, true) {
            let item = item.id.clone();
            self.send_to_client(ClientOutput::AudioStarted { item });
        }
        for frame in pcm.chunks(MAX_FRAME_BYTES) {
            self.send_to_client(ClientOutput::Audio(frame.to_vec()));
        }
    }

    /// All audio of the item has arrived.
    pub(super) fn end_item(&mut self) {
        let Some(item) = self.speech.item.as_ref().filter(|item| !item.is_ended && !item.is_interrupted)
        else {
            return;
        };
        let id = item.id.clone();
        let rest = self.to_client.flush();
        self.send_audio(&rest);
        let ms = self.speech.length_ms();
        let Some(item) = &mut self.speech.item else { return };
        item.is_ended = true;
        if item.is_announced {
            self.send_to_client(ClientOutput::AudioEnded { item: id, ms });
        }
    }

    /// Stops playback. The model is informed when the playback position is known.
    pub(super) fn interrupt(&mut self) {
        if !self.speech.is_playing() && self.speech.item.as_ref().is_none_or(|item| item.is_ended) {
            return;
        }
        let Some(item) = self.speech.item.as_mut().filter(|item| !item.is_interrupted) else { return };
        item.is_interrupted = true;
        let (id, is_announced) = (item.id.clone(), item.is_announced);
        self.queue.drop_audio();
        if is_announced {
            self.send_to_client(ClientOutput::Interrupted { item: id });
        }
        self.playback_interrupted();
        self.turn.is_interrupted = true;
        self.log.interrupted();
        self.timers.truncate_at = Some(Instant::now() + PLAYED_TIMEOUT);
        self.shared.metrics.count(|metrics| metrics.interruptions += 1);
    }

    /// Reports to the model how much of the interrupted item was played.
    pub(super) fn truncate(&mut self) {
        self.timers.truncate_at = None;
        let ms = self.speech.heard_ms();
        let item = self.speech.item.as_ref().and_then(|item| item.provider_id.clone());
        self.send(Command::Interrupt { item, ms });
    }

    async fn speech_started(&mut self) {
        self.timers.activity();
        self.interrupt();
        self.begin_turn().await;
        self.turn.user_started.get_or_insert_with(Instant::now);
    }

    async fn user_text(&mut self, text: &str, is_final: bool) {
        self.timers.activity();
        // The transcript of an utterance that the model has already answered.
        if !self.turn.awaits_transcript || self.turn.is_open {
            let is_new = self.turn.user_piece_at.is_none();
            // The model receives all audio, and decides itself what is an interruption.
            if is_new && self.shared.options.provider.tools == ToolUse::Calls {
                self.interrupt();
            }
            self.begin_turn().await;
        }
        self.turn.user_started.get_or_insert_with(Instant::now);
        if is_final {
            let is_known = self.turn.user_piece_at.is_none() && self.turn.user_text == text;
            self.turn.user_text = text.to_owned();
            if !is_known {
                self.turn.user_piece_at = Some(Instant::now());
                self.user_utterance_complete().await;
            }
            return;
        }
        if self.turn.user_text.len() < MAX_UTTERANCE_BYTES {
            self.turn.user_text.push_str(text);
        }
        self.turn.user_piece_at = Some(Instant::now());
        self.delegations.heard(text);
        let (speaker, text) = (Speaker::User, text.to_owned());
        self.send_to_client(ClientOutput::Transcript {
            speaker,
            text,
            is_final: false,
            is_interrupted: false,
        });
    }

    /// The utterance of the user is complete.
    pub(super) async fn user_utterance_complete(&mut self) {
        if self.turn.user_piece_at.take().is_none() {
            return;
        }
        let text = self.turn.user_text.trim().to_owned();
        self.log.user(&text);
        self.tell_user_text(&text);
        let started = self.turn.user_started.take();
        if self.turn.awaits_transcript {
            self.turn.awaits_transcript = false;
            self.turn.user_text.clear();
            self.end_logged_turn().await;
        }
        self.user_answered(&text, started).await;
    }

    pub(super) fn tell_user_text(&self, text: &str) {
        let (speaker, text) = (Speaker::User, text.to_owned());
        self.send_to_client(ClientOutput::Transcript {
            speaker,
            text,
            is_final: true,
            is_interrupted: false,
        });
    }

    fn assistant_text(&mut self, text: &str) {
        if self.speech.is_cut || text.is_empty() {
            return;
        }
        if self.turn.assistant_text.len() < MAX_UTTERANCE_BYTES {
            self.turn.assistant_text.push_str(text);
        }
        self.log.assistant(text);
        let (speaker, text) = (Speaker::Assistant, text.to_owned());
        self.send_to_client(ClientOutput::Transcript {
            speaker,
            text,
            is_final: false,
            is_interrupted: false,
        });
    }

    async fn turn_complete(&mut self) {
        self.end_item();
        self.speech.is_cut = false;
        // An utterance is complete once the model has answered it.
        let is_heard = self.turn.user_piece_at.is_some();
        if is_heard {
            self.user_utterance_complete().await;
        }
        let said = self.said_since_request();
        self.end_assistant_text();
        let (has_audio, has_calls) = (self.turn.has_audio, self.turn.has_calls);
        let is_empty = self.turn.is_open && !has_audio && !has_calls && !self.turn.is_interrupted;
        self.shared.metrics.count_turn(self.speech.take_level(), is_empty);
        self.model_has_spoken(has_audio, said.as_deref());
        if let Some(item) = self.speech.item.as_ref().filter(|_| has_audio) {
            self.calls.model_has_spoken(item.started);
        }
        let is_spoken = self.shared.options.provider.tools == ToolUse::Calls;
        self.turn.awaits_transcript = is_spoken && self.turn.is_open && !self.log.has_user_text();
        if !self.turn.awaits_transcript {
            self.end_logged_turn().await;
            self.turn.user_text.clear();
        }
        self.turn.is_open = false;
        self.turn.has_audio = false;
        self.turn.has_calls = false;
        self.turn.is_interrupted = false;
        self.turn_may_end_session(has_audio).await;
        self.reconnect_when_idle().await;
        self.flush_notes();
    }

    /// Completes the model's utterance.
    pub(super) fn end_assistant_text(&mut self) {
        self.turn.requested_at = 0;
        let text = std::mem::take(&mut self.turn.assistant_text).trim().to_owned();
        if !text.is_empty() {
            let (speaker, is_interrupted) = (Speaker::Assistant, self.turn.is_interrupted);
            self.send_to_client(ClientOutput::Transcript { speaker, text, is_final: true, is_interrupted });
        }
    }

    /// Whether the model can receive a text without being interrupted.
    fn is_model_idle(&self) -> bool {
        let is_speaking =
            self.speech.item.as_ref().is_some_and(|item| !item.is_ended && !item.is_interrupted);
        self.connection.is_some()
            && !is_speaking
            && self.turn.user_piece_at.is_none()
            && !self.calls.blocks_model()
    }

    /// Sends the waiting texts of the server to the model, once it is idle.
    pub(super) fn flush_notes(&mut self) {
        if self.notes.is_empty() || !self.is_model_idle() {
            return;
        }
        let text = std::mem::take(&mut self.notes).join("\n\n");
        self.send(Command::Context(text));
    }

    pub(super) async fn end_logged_turn(&mut self) {
        if let Some(turn) = self.log.end_turn().await {
            self.calls.turn_written(&turn);
            self.confirmations.turn_written(&turn);
        }
    }
}

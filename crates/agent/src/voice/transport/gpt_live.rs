//! GPT-Live: full duplex, without tools. The model delegates; the text agent's answer is sent back as commentary.
//!
//! The API has neither turns nor an end of speech, so utterances are grouped here by pauses.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Codec, CodecOutput, Command, ConnectionSetup, Event, Role, ToolUse, VoiceProvider, text};
use crate::voice::pcm::{decode_base64, encode_base64, level};

const RATE: u32 = 24_000;
/// The model speaks only while it receives audio: sends silence of a tenth of a second.
const SILENCE_BYTES: usize = RATE as usize * 2 / 10;
/// After this pause, silence is sent in place of the microphone's audio.
const INPUT_PAUSE: Duration = Duration::from_millis(150);
/// The pause that ends an utterance of the model.
const OUTPUT_PAUSE: Duration = Duration::from_millis(800);
/// The pause that ends an utterance of the user.
const USER_PAUSE: Duration = Duration::from_millis(500);
/// Output below this level is silence between utterances.
const SILENCE_LEVEL: f64 = 0.001;
/// The service's limit is 500 tokens, and the count is an estimate.
const MAX_COMMENTARY_TOKENS: usize = 450;
const MAX_INSTRUCTION_TOKENS: usize = 16_000;
const MAX_HISTORY_TOKENS: usize = 8_000;
const MAX_HISTORY_MESSAGES: usize = 128;

pub(super) const PROVIDER: VoiceProvider = VoiceProvider {
    name: "gpt-live",
    title: "GPT-Live",
    url: "wss://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    default_model: "gpt-live-1",
    view: "openai-realtime",
    input_rate: RATE,
    output_rate: RATE,
    tools: ToolUse::Delegates,
    path: |_| "/live/sessions".to_owned(),
    headers: |key| vec![("authorization", format!("Bearer {key}"))],
    codec: |setup| Box::new(GptLive::new(setup)),
};

struct GptLive {
    setup: ConnectionSetup,
    is_ready: bool,
    next_id: u64,
    last_input: Option<Instant>,
    /// When the model was last audible; `None` between utterances.
    speaking: Option<Instant>,
    /// The open utterance of the user.
    heard: String,
    heard_at: Instant,
}

impl GptLive {
    fn new(setup: ConnectionSetup) -> Self {
        Self {
            setup,
            is_ready: false,
            next_id: 0,
            last_input: None,
            speaking: None,
            heard: String::new(),
            heard_at: Instant::now(),
        }
    }

    fn start(&mut self) -> Value {
        let ConnectionSetup { model, instructions, voice, history, .. } = &self.setup;
        let mut audio = json!({ "format": { "type": "audio/pcm", "rate": RATE } });
        if let Some(voice) = voice {
            audio["output"] = json!({ "voice": voice });
        }
        let mut session = json!({
            "model": model,
            "instructions": pieces(instructions, MAX_INSTRUCTION_TOKENS).first(),
            "audio": audio,
            "delegation": { "type": "client", "acknowledgement_delay_ms": 400 },
            "store": false,
        });
        let mut left = MAX_HISTORY_TOKENS;
        let mut input = Vec::new();
        for message in history.iter().rev().take(MAX_HISTORY_MESSAGES) {
            let Some(rest) = left.checked_sub(tokens(&message.text)) else { break };
            left = rest;
            let (role, kind) = match message.role {
                Role::User => ("user", "input_text"),
                Role::Assistant => ("assistant", "output_text"),
            };
            input.push(json!({ "role": role, "content": [{ "type": kind, "text": message.text }] }));
        }
        if !input.is_empty() {
            input.reverse();
            session["input"] = input.into();
        }
        json!({ "type": "session.start", "event_id": self.event_id(), "session": session })
    }

    fn event_id(&mut self) -> String {
        self.next_id += 1;
        format!("tw_{}", self.next_id)
    }

    fn append(&mut self, kind: &str, delegation: Option<&str>, text: &str, output: &mut CodecOutput) {
        for piece in pieces(text, MAX_COMMENTARY_TOKENS) {
            let event_id = self.event_id();
            output.send(&json!({ "type": format!("session.{kind}.append"), "event_id": event_id,
                "delegation_id": delegation, "content": piece }));
        }
    }

    fn end_user_utterance(&mut self, output: &mut CodecOutput) {
        if !self.heard.is_empty() {
            let text = std::mem::take(&mut self.heard);
            output.events.push(Event::UserText { text, is_final: true });
        }
    }
}

impl Codec for GptLive {
    fn open(&mut self, output: &mut CodecOutput) {
        let start = self.start();
        output.send(&start);
    }

    fn audio(&mut self, pcm: &[u8], output: &mut CodecOutput) {
        self.last_input = Some(Instant::now());
        let data = encode_base64(pcm);
        output.messages.push(format!(r#"{{"type":"session.input_audio.append","audio":"{data}"}}"#));
    }

    fn command(&mut self, command: Command, output: &mut CodecOutput) {
        match command {
            Command::Commentary { delegation, text } => {
                self.append("commentary", delegation.as_deref(), &text, output);
            }
            Command::Context(text) => self.append("commentary", None, &text, output),
            Command::Muted(is_muted) => {
                let kind = if is_muted { "mute" } else { "unmute" };
                let event_id = self.event_id();
                output.send(&json!({ "type": format!("session.input_audio.{kind}"), "event_id": event_id }));
            }
            Command::Close => {
                let event_id = self.event_id();
                output.send(&json!({ "type": "session.close", "event_id": event_id }));
            }
            // The model accepts no text, calls no tools, and decides itself when it stops speaking.
            Command::Text(_) | Command::Result { .. } | Command::Filler(_) | Command::Interrupt { .. } => {}
        }
    }

    fn message(&mut self, event: &Value, output: &mut CodecOutput) {
        match text(event, "/type") {
            "session.started" if !self.is_ready => {
                self.is_ready = true;
                output.events.push(Event::Ready);
            }
            "session.output_audio.delta" => match decode_base64(text(event, "/delta")) {
                // Between utterances the model sends silence, which is not speech.
                Some(pcm) if self.speaking.is_none() && level(&pcm) < SILENCE_LEVEL => {}
                Some(pcm) => {
                    if level(&pcm) >= SILENCE_LEVEL {
                        self.speaking = Some(Instant::now());
                    }
                    output.events.push(Event::Audio { item: None, pcm });
                }
                None => output.events.push(Event::Warning("audio that is not base64".to_owned())),
            },
            "session.input_transcript.delta" => {
                let text = text(event, "/delta").to_owned();
                self.heard.push_str(&text);
                self.heard_at = Instant::now();
                output.events.push(Event::UserText { text, is_final: false });
            }
            "session.output_transcript.delta" => {
                output.events.push(Event::AssistantText(text(event, "/delta").to_owned()));
            }
            "session.delegation.created" => {
                let id = text(event, "/delegation/id").to_owned();
                output.events.push(Event::Delegated { id });
            }
            "session.closed" => {
                output.events.push(Event::Closed { reason: text(event, "/reason").to_owned() });
            }
            "error" => {
                let reason = format!("{}: {}", text(event, "/error/code"), text(event, "/error/message"));
                output.events.push(match self.is_ready {
                    true => Event::Warning(reason),
                    false => Event::Closed { reason },
                });
            }
            _ => {}
        }
    }

    fn tick(&mut self, output: &mut CodecOutput) {
        if !self.is_ready {
            return;
        }
        if self.last_input.is_none_or(|at| at.elapsed() >= INPUT_PAUSE) {
            let data = encode_base64(&[0; SILENCE_BYTES]);
            output.messages.push(format!(r#"{{"type":"session.input_audio.append","audio":"{data}"}}"#));
        }
        if self.heard_at.elapsed() >= USER_PAUSE {
            self.end_user_utterance(output);
        }
        if self.speaking.is_some_and(|at| at.elapsed() >= OUTPUT_PAUSE) {
            self.speaking = None;
            output.events.push(Event::TurnComplete);
        }
    }
}

/// Estimates the tokens of a text: four letters, one letter of a large alphabet, or one word each.
pub(crate) fn tokens(text: &str) -> usize {
    let (mut wide, mut narrow) = (0, 0_usize);
    for c in text.chars() {
        if u32::from(c) > 0x2ff { wide += 1 } else { narrow += 1 }
    }
    text.split_whitespace().count().max(narrow.div_ceil(4) + wide)
}

/// The text in pieces of at most `limit` tokens, split after a sentence or a word if possible.
pub(crate) fn pieces(text: &str, limit: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = text.trim();
    while tokens(rest) > limit {
        // A prefix of `limit` characters has no more than `limit` tokens.
        let fits = |end: usize| tokens(&rest[..end]) <= limit;
        let ends: Vec<usize> = rest.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
        let longest = ends.partition_point(|end| fits(*end)).max(1);
        let end = ends.get(longest - 1).copied().unwrap_or(rest.len());
        let sentence =
            rest[..end].rfind(['.', '!', '?', '\n', '。']).map(|at| rest.ceil_char_boundary(at + 1));
        let word = rest[..end].rfind(char::is_whitespace);
        let cut = sentence.or(word).filter(|cut| *cut > end / 2).unwrap_or(end);
        pieces.push(rest[..cut].trim().to_owned());
        rest = rest[cut..].trim_start();
    }
    if !rest.is_empty() {
        pieces.push(rest.to_owned());
    }
    pieces
}

//! OpenAI Realtime, GA form. After results the model waits for `response.create`; it makes one response at a time.

use serde_json::{Value, json};
use toolwright_providers::{Call, provider};

use super::{
    Codec, CodecOutput, Command, ConnectionSetup, Event, ModelCall, Role, ToolUse, VoiceProvider, text,
};
use crate::voice::pcm::{decode_base64, encode_base64};

/// Enough silence for the model's voice detection to end the turn.
const SILENCE_BYTES: usize = 24_000 * 2 * 7 / 10;

pub(super) const PROVIDER: VoiceProvider = VoiceProvider {
    name: "openai-realtime",
    title: "OpenAI Realtime",
    url: "wss://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    default_model: "gpt-realtime",
    view: "openai-realtime",
    input_rate: 24_000,
    output_rate: 24_000,
    tools: ToolUse::Calls,
    path: |model| format!("/realtime?model={model}"),
    headers: |key| vec![("authorization", format!("Bearer {key}"))],
    codec: |setup| Box::new(OpenAiRealtime::new(setup)),
};

struct OpenAiRealtime {
    setup: ConnectionSetup,
    is_ready: bool,
    /// A response is in progress or was requested.
    is_responding: bool,
    /// The user is speaking, so the service cancels the response itself.
    is_cancelled: bool,
    /// The response is outside of the conversation, so its end is not the end of a turn.
    is_filler: bool,
    /// A response is needed once none is in progress and no call is open.
    wants_response: bool,
    /// Calls without a result.
    open_calls: Vec<String>,
}

impl OpenAiRealtime {
    const fn new(setup: ConnectionSetup) -> Self {
        Self {
            setup,
            is_ready: false,
            is_responding: false,
            is_cancelled: false,
            is_filler: false,
            wants_response: false,
            open_calls: Vec::new(),
        }
    }

    fn session(&self) -> Value {
        let ConnectionSetup { instructions, view, voice, language, .. } = &self.setup;
        let mut transcription = json!({ "model": "gpt-4o-mini-transcribe" });
        if let Some(language) = language {
            // ISO 639-1.
            transcription["language"] = language.split('-').next().unwrap_or_default().into();
        }
        let format = json!({ "type": "audio/pcm", "rate": 24000 });
        let mut output = json!({ "format": format });
        if let Some(voice) = voice {
            output["voice"] = voice.as_str().into();
        }
        json!({
            "type": "realtime",
            "output_modalities": ["audio"],
            "instructions": &**instructions,
            "tools": view.declarations,
            "tool_choice": "auto",
            "audio": {
                "input": {
                    "format": format,
                    "transcription": transcription,
                    "turn_detection": { "type": "server_vad", "create_response": true, "interrupt_response": true },
                },
                "output": output,
            },
        })
    }

    fn respond(&mut self, output: &mut CodecOutput) {
        self.wants_response = true;
        self.respond_when_free(output);
    }

    fn respond_when_free(&mut self, output: &mut CodecOutput) {
        if self.wants_response && !self.is_responding && self.open_calls.is_empty() {
            self.wants_response = false;
            self.is_responding = true;
            output.send(&json!({ "type": "response.create" }));
        }
    }

    fn response_done(&mut self, event: &Value, output: &mut CodecOutput) {
        self.is_responding = false;
        self.is_cancelled = false;
        if std::mem::take(&mut self.is_filler) {
            return self.respond_when_free(output);
        }
        let status = text(event, "/response/status");
        if status == "cancelled" {
            output.events.push(Event::Interrupted);
        } else if status == "failed" {
            let reason = text(event, "/response/status_details/error/message");
            output.events.push(Event::Warning(format!("a response failed: {reason}")));
        }
        let mut calls = Vec::new();
        if let Ok(codec) = provider(PROVIDER.view) {
            for mut call in codec.read(event) {
                self.setup.view.restore(&mut call);
                let Call { id, name, arguments } = call;
                let id = id.unwrap_or_default();
                self.open_calls.push(id.clone());
                calls.push(ModelCall { id, name, args: arguments });
            }
        }
        if calls.is_empty() {
            output.events.push(Event::TurnComplete);
        } else {
            output.events.push(Event::Calls(calls));
        }
        self.respond_when_free(output);
    }

    fn interrupt(&self, item: Option<String>, ms: u64, output: &mut CodecOutput) {
        if self.is_responding && !self.is_cancelled {
            output.send(&json!({ "type": "response.cancel" }));
        }
        if let Some(item) = item {
            output.send(&json!({
                "type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": ms,
            }));
        }
    }

    fn error(&mut self, event: &Value, output: &mut CodecOutput) {
        let (code, message) = (text(event, "/error/code"), text(event, "/error/message"));
        output.events.push(match code {
            // Both are races: the model has begun or ended a response by itself.
            "conversation_already_has_active_response" => {
                self.wants_response = true;
                return;
            }
            "response_cancel_not_active" => return,
            _ if self.is_ready => Event::Warning(format!("{code}: {message}")),
            _ => Event::Closed { reason: format!("{code}: {message}") },
        });
    }
}

fn message_item(role: &str, kind: &str, text: &str) -> Value {
    let content = json!([{ "type": kind, "text": text }]);
    json!({ "type": "conversation.item.create", "item": { "type": "message", "role": role, "content": content } })
}

impl Codec for OpenAiRealtime {
    fn open(&mut self, output: &mut CodecOutput) {
        output.send(&json!({ "type": "session.update", "session": self.session() }));
    }

    fn audio(&mut self, pcm: &[u8], output: &mut CodecOutput) {
        let data = encode_base64(pcm);
        output.messages.push(format!(r#"{{"type":"input_audio_buffer.append","audio":"{data}"}}"#));
    }

    fn command(&mut self, command: Command, output: &mut CodecOutput) {
        match command {
            Command::Text(text) => {
                output.send(&message_item("user", "input_text", &text));
                self.respond(output);
            }
            Command::Context(text) | Command::Commentary { text, .. } => {
                output.send(&message_item("system", "input_text", &text));
                self.respond(output);
            }
            Command::Muted(true) => self.audio(&vec![0; SILENCE_BYTES], output),
            Command::Result { id, content, .. } => {
                let item =
                    json!({ "type": "function_call_output", "call_id": id, "output": content.to_string() });
                output.send(&json!({ "type": "conversation.item.create", "item": item }));
                self.open_calls.retain(|open| *open != id);
                self.respond(output);
            }
            Command::Filler(text) if !self.is_responding => {
                self.is_responding = true;
                self.is_filler = true;
                let instructions = format!("say {text}");
                let response = json!({ "conversation": "none", "input": [], "instructions": instructions,
                    "tool_choice": "none" });
                output.send(&json!({ "type": "response.create", "response": response }));
            }
            Command::Interrupt { item, ms } => self.interrupt(item, ms, output),
            Command::Muted(false) | Command::Filler(_) | Command::Close => {}
        }
    }

    fn can_say_filler(&self) -> bool {
        !self.is_responding
    }

    fn message(&mut self, event: &Value, output: &mut CodecOutput) {
        match text(event, "/type") {
            "session.updated" if !self.is_ready => {
                self.is_ready = true;
                for message in &self.setup.history {
                    let (role, kind) = match message.role {
                        Role::User => ("user", "input_text"),
                        Role::Assistant => ("assistant", "output_text"),
                    };
                    output.send(&message_item(role, kind, &message.text));
                }
                output.events.push(Event::Ready);
            }
            "input_audio_buffer.speech_started" => {
                // `interrupt_response` applies to responses of the conversation, which a filler is not.
                self.is_cancelled = self.is_responding && !self.is_filler;
                output.events.push(Event::SpeechStarted);
            }
            "conversation.item.input_audio_transcription.delta" => {
                let text = text(event, "/delta").to_owned();
                output.events.push(Event::UserText { text, is_final: false });
            }
            "conversation.item.input_audio_transcription.completed" => {
                let text = text(event, "/transcript").to_owned();
                output.events.push(Event::UserText { text, is_final: true });
            }
            "response.created" => self.is_responding = true,
            "response.output_audio.delta" => {
                // A filler is not an item of the conversation, and cannot be truncated.
                let item = (!self.is_filler).then(|| text(event, "/item_id").to_owned());
                match decode_base64(text(event, "/delta")) {
                    Some(pcm) => output.events.push(Event::Audio { item, pcm }),
                    None => output.events.push(Event::Warning("audio that is not base64".to_owned())),
                }
            }
            "response.output_audio_transcript.delta" => {
                output.events.push(Event::AssistantText(text(event, "/delta").to_owned()));
            }
            "response.done" => self.response_done(event, output),
            "error" => self.error(event, output),
            _ => {}
        }
    }
}

//! Gemini Live: `BidiGenerateContent` over WebSocket. Each message has one key; the server sends text or binary
//! frames.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_providers::{Call, ToolResult, provider};

use super::{
    Codec, CodecOutput, Command, ConnectionSetup, Event, ModelCall, Role, ToolUse, VoiceProvider, text,
};
use crate::voice::pcm::{decode_base64, encode_base64};

pub(super) const PROVIDER: VoiceProvider = VoiceProvider {
    name: "gemini-live",
    title: "Gemini Live",
    url: "wss://generativelanguage.googleapis.com",
    key_env: "GEMINI_API_KEY",
    default_model: "gemini-3.8-live",
    view: "gemini-native",
    input_rate: 16_000,
    output_rate: 24_000,
    tools: ToolUse::Calls,
    path: |_| "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent".to_owned(),
    headers: |key| vec![("x-goog-api-key", key.to_owned())],
    codec: |setup| Box::new(GeminiLive::new(setup)),
};

struct GeminiLive {
    setup: ConnectionSetup,
    /// Whether the conversation continues while calls run. Declared for each tool, because the models' defaults
    /// differ.
    behavior: Behavior,
    is_ready: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Behavior {
    Blocking,
    NonBlocking,
}

impl GeminiLive {
    fn new(setup: ConnectionSetup) -> Self {
        // Model 3.8 cancels a blocking call at any new input, and its thinking variant refuses blocking calls. Older
        // models are synchronous.
        let behavior = if setup.model.contains("3.8") { Behavior::NonBlocking } else { Behavior::Blocking };
        Self { setup, behavior, is_ready: false }
    }

    fn tools(&self) -> Value {
        let behavior = match self.behavior {
            Behavior::Blocking => "BLOCKING",
            Behavior::NonBlocking => "NON_BLOCKING",
        };
        let mut tools = self.setup.view.declarations.clone();
        let groups = tools.as_array_mut().into_iter().flatten();
        for group in groups {
            let declarations = group.get_mut("functionDeclarations").and_then(Value::as_array_mut);
            for declaration in declarations.into_iter().flatten() {
                declaration["behavior"] = behavior.into();
            }
        }
        tools
    }

    fn setup_message(&self) -> Value {
        let ConnectionSetup { model, instructions, voice, language, resume, history, .. } = &self.setup;
        let model = if model.contains('/') { model.clone() } else { format!("models/{model}") };
        let mut speech = json!({});
        if let Some(voice) = voice {
            speech["voiceConfig"] = json!({ "prebuiltVoiceConfig": { "voiceName": voice } });
        }
        if let Some(language) = language {
            speech["languageCode"] = language.as_str().into();
        }
        let mut generation = json!({ "responseModalities": ["AUDIO"] });
        if speech.as_object().is_some_and(|members| !members.is_empty()) {
            generation["speechConfig"] = speech;
        }
        let mut setup = json!({
            "model": model,
            "generationConfig": generation,
            "systemInstruction": { "parts": [{ "text": &**instructions }] },
            "tools": self.tools(),
            "inputAudioTranscription": {},
            "outputAudioTranscription": {},
            "contextWindowCompression": { "slidingWindow": {} },
            "sessionResumption": resume.as_ref().map_or_else(|| json!({}), |handle| json!({ "handle": handle })),
        });
        if resume.is_none() && !history.is_empty() {
            setup["historyConfig"] = json!({ "initialHistoryInClientContent": true });
        }
        json!({ "setup": setup })
    }

    fn history_message(&self) -> Option<Value> {
        if self.setup.resume.is_some() || self.setup.history.is_empty() {
            return None;
        }
        let turns = self.setup.history.iter().map(|message| {
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "model",
            };
            json!({ "role": role, "parts": [{ "text": message.text }] })
        });
        Some(json!({ "clientContent": { "turns": turns.collect::<Vec<_>>(), "turnComplete": true } }))
    }

    fn result(&self, id: String, name: String, content: &Arc<Value>) -> Vec<Value> {
        let Ok(codec) = provider(PROVIDER.view) else { return Vec::new() };
        let call = Call { id: Some(id), name, arguments: Ok(Value::Null) };
        let mut messages = codec.write(&[ToolResult::from_model_value(&call, content)]);
        if self.behavior == Behavior::NonBlocking {
            let responses = messages
                .iter_mut()
                .filter_map(|message| message.pointer_mut("/toolResponse/functionResponses")?.as_array_mut());
            responses.flatten().for_each(|response| response["scheduling"] = "WHEN_IDLE".into());
        }
        messages
    }

    fn server_content(content: &Value, output: &mut CodecOutput) {
        let is_true = |name: &str| content.get(name).is_some_and(|value| *value == Value::Bool(true));
        let heard = text(content, "/inputTranscription/text");
        if !heard.is_empty() {
            output.events.push(Event::UserText { text: heard.to_owned(), is_final: false });
        }
        let parts = content.pointer("/modelTurn/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            let kind = text(part, "/inlineData/mimeType");
            if !kind.starts_with("audio/pcm") {
                continue;
            }
            match decode_base64(text(part, "/inlineData/data")) {
                Some(pcm) => output.events.push(Event::Audio { item: None, pcm }),
                None => output.events.push(Event::Warning("audio that is not base64".to_owned())),
            }
        }
        let said = text(content, "/outputTranscription/text");
        if !said.is_empty() {
            output.events.push(Event::AssistantText(said.to_owned()));
        }
        if is_true("interrupted") {
            output.events.push(Event::Interrupted);
        }
        // While an interaction is in progress, more output follows the turn.
        if is_true("turnComplete") && text(content, "/interactionStatus") != "IN_PROGRESS" {
            output.events.push(Event::TurnComplete);
        }
    }
}

impl Codec for GeminiLive {
    fn open(&mut self, output: &mut CodecOutput) {
        output.send(&self.setup_message());
    }

    fn audio(&mut self, pcm: &[u8], output: &mut CodecOutput) {
        let data = encode_base64(pcm);
        output.messages.push(format!(
            r#"{{"realtimeInput":{{"audio":{{"mimeType":"audio/pcm;rate=16000","data":"{data}"}}}}}}"#
        ));
    }

    fn command(&mut self, command: Command, output: &mut CodecOutput) {
        match command {
            Command::Text(text) => output.send(&json!({ "realtimeInput": { "text": text } })),
            Command::Muted(true) => output.send(&json!({ "realtimeInput": { "audioStreamEnd": true } })),
            Command::Context(text) | Command::Commentary { text, .. } => {
                let turns = json!([{ "role": "user", "parts": [{ "text": text }] }]);
                output.send(&json!({ "clientContent": { "turns": turns, "turnComplete": true } }));
            }
            Command::Result { id, name, content } => {
                self.result(id, name, &content).iter().for_each(|message| output.send(message));
            }
            // The API has no message that stops the model or makes it speak outside of the conversation.
            Command::Muted(false) | Command::Filler(_) | Command::Interrupt { .. } | Command::Close => {}
        }
    }

    fn message(&mut self, message: &Value, output: &mut CodecOutput) {
        if message.get("setupComplete").is_some() && !self.is_ready {
            self.is_ready = true;
            self.history_message().iter().for_each(|history| output.send(history));
            output.events.push(Event::Ready);
        }
        if let Some(content) = message.get("serverContent") {
            Self::server_content(content, output);
        }
        if message.get("toolCall").is_some()
            && let Ok(codec) = provider(PROVIDER.view)
        {
            let mut calls = Vec::new();
            for mut call in codec.read(message) {
                self.setup.view.restore(&mut call);
                let Call { id, name, arguments } = call;
                calls.push(ModelCall { id: id.unwrap_or_default(), name, args: arguments });
            }
            output.events.push(Event::Calls(calls));
        }
        if let Some(ids) = message.pointer("/toolCallCancellation/ids").and_then(Value::as_array) {
            let ids = ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
            output.events.push(Event::CallsCancelled(ids));
        }
        if let Some(update) = message.get("sessionResumptionUpdate") {
            let is_resumable = update.get("resumable") == Some(&Value::Bool(true));
            let handle = text(update, "/newHandle");
            let handle = (is_resumable && !handle.is_empty()).then(|| handle.to_owned());
            output.events.push(Event::Resumable(handle));
        }
        if message.get("goAway").is_some() {
            let left = text(message, "/goAway/timeLeft").trim_end_matches('s').parse::<f64>();
            let left = Duration::try_from_secs_f64(left.unwrap_or_default()).unwrap_or_default();
            output.events.push(Event::GoingAway { left });
        }
    }
}

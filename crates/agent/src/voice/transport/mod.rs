//! The connections to voice models. One file a provider says how its messages are written and read; the socket, its queue
//! and its limits are the same for all. The bridge knows none of the providers.

mod gemini_live;
mod gpt_live;
mod openai_realtime;
mod socket;
mod write_queue;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolwright_providers::View;

pub(crate) use socket::{ConnectError, Connection, Endpoint};

/// One provider of voice models.
#[derive(Debug)]
pub(crate) struct VoiceProvider {
    /// As in `[voice] provider`.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// The provider's own address, without a `/` at its end.
    pub url: &'static str,
    pub key_env: &'static str,
    pub default_model: &'static str,
    /// The form of tool declarations, as in `toolwright_providers::PROVIDERS`.
    pub view: &'static str,
    /// The sample rates that it takes and sends.
    pub input_rate: u32,
    pub output_rate: u32,
    /// How tools are used.
    pub tools: ToolUse,
    /// It can say something while a call runs.
    pub says_fillers: bool,
    /// The path and query of the socket, after the address.
    pub path: fn(model: &str) -> String,
    pub headers: fn(key: &str) -> Vec<(&'static str, String)>,
    pub codec: fn(ConnectionSetup) -> Box<dyn Codec>,
}

/// How the model gets at tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolUse {
    /// It calls them.
    Calls,
    /// It has none: it delegates tasks, which the text agent carries out. It also owns turn-taking, and speaks only while it
    /// receives audio.
    Delegates,
}

/// All providers. A new one is a file and a row here.
pub(crate) const VOICE_PROVIDERS: &[VoiceProvider] =
    &[gemini_live::PROVIDER, openai_realtime::PROVIDER, gpt_live::PROVIDER];

/// The provider with this name; the error lists all.
pub(crate) fn voice_provider(name: &str) -> Result<&'static VoiceProvider, String> {
    VOICE_PROVIDERS.iter().find(|provider| provider.name == name).ok_or_else(|| {
        let names: Vec<String> = VOICE_PROVIDERS.iter().map(|row| format!("`{}`", row.name)).collect();
        let name: String = name.chars().take(100).collect();
        format!("there is no voice provider `{name}`; there are {}", names.join(", "))
    })
}

/// The start of a connection: what the model is told.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSetup {
    pub model: String,
    pub instructions: Arc<str>,
    pub view: Arc<View>,
    /// The model's voice; `None`: the provider's default.
    pub voice: Option<String>,
    /// A BCP 47 tag.
    pub language: Option<String>,
    /// The conversation so far, for a model that does not know it.
    pub history: Vec<HistoryMessage>,
    /// The handle with which the provider takes up the conversation.
    pub resume: Option<String>,
}

/// A message of the conversation before a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryMessage {
    pub role: Role,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
}

/// The bridge's requests to the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Typed input of the user.
    Text(String),
    /// The microphone is off; no audio follows until it is on again.
    Muted(bool),
    /// A text of the server that the model answers, such as a result that came too late for its call.
    Context(String),
    /// The answer to a call of this connection.
    Result {
        id: String,
        name: String,
        content: Arc<Value>,
    },
    /// Say this, outside of the conversation, while a call runs.
    Filler(String),
    /// Stop speaking. `ms` of the item were heard.
    Interrupt {
        item: Option<String>,
        ms: u64,
    },
    /// An answer to a delegation; without an id, something to say.
    Commentary {
        delegation: Option<String>,
        text: String,
    },
    Close,
}

/// The model's events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The session is set up.
    Ready,
    /// PCM at the provider's output rate. The item is the provider's id for it.
    Audio {
        item: Option<String>,
        pcm: Vec<u8>,
    },
    /// The user begins to speak.
    SpeechStarted,
    /// A piece of the user's transcript; `is_final`: the whole utterance, which replaces the pieces.
    UserText {
        text: String,
        is_final: bool,
    },
    AssistantText(String),
    /// The user has interrupted the model.
    Interrupted,
    Calls(Vec<ModelCall>),
    /// The model does not want these results any more.
    CallsCancelled(Vec<String>),
    /// The model has answered, and waits for the user.
    TurnComplete,
    Delegated {
        id: String,
    },
    /// The connection ends soon.
    GoingAway {
        left: Duration,
    },
    /// With this handle the conversation can be taken up again; `None`: not now.
    Resumable(Option<String>),
    /// The provider reports an error and goes on.
    Warning(String),
    /// The session is over.
    Closed {
        reason: String,
    },
}

/// A call as the model makes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelCall {
    pub id: String,
    pub name: String,
    /// The arguments, or the text that is not JSON.
    pub args: Result<Value, toolwright_providers::InvalidArguments>,
}

/// The output of a codec: messages to the provider, and events for the bridge.
#[derive(Debug, Default)]
pub(crate) struct CodecOutput {
    pub messages: Vec<String>,
    pub events: Vec<Event>,
}

impl CodecOutput {
    fn send(&mut self, message: &Value) {
        self.messages.push(message.to_string());
    }
}

/// One provider's messages. No I/O.
pub(crate) trait Codec: Send {
    /// The messages that open the session; [`Event::Ready`] follows.
    fn open(&mut self, output: &mut CodecOutput);
    /// A piece of the user's audio.
    fn audio(&mut self, pcm: &[u8], output: &mut CodecOutput);
    fn command(&mut self, command: Command, output: &mut CodecOutput);
    fn message(&mut self, message: &Value, output: &mut CodecOutput);
    /// Called ten times a second.
    fn tick(&mut self, output: &mut CodecOutput) {
        let _ = output;
    }
}

/// The text in a member of an object.
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;

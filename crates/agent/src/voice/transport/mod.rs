//! The connections to voice models. Each provider has one file, which writes and reads its messages; the socket, its
//! queue and its limits are shared. The bridge does not know the providers.

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
    /// The provider's own address, without a trailing `/`.
    pub url: &'static str,
    pub key_env: &'static str,
    pub default_model: &'static str,
    /// The form of tool declarations, as in `toolwright_providers::PROVIDERS`.
    pub view: &'static str,
    /// The sample rates of its input and output.
    pub input_rate: u32,
    pub output_rate: u32,
    /// How the model uses tools.
    pub tools: ToolUse,
    /// The path and query of the socket, after the address.
    pub path: fn(model: &str) -> String,
    pub headers: fn(key: &str) -> Vec<(&'static str, String)>,
    pub codec: fn(ConnectionSetup) -> Box<dyn Codec>,
}

/// How the model uses tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolUse {
    /// The model calls tools itself.
    Calls,
    /// The model has no tools: it delegates to the text agent. It also owns turn-taking, and speaks only while it
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

/// The parameters of a new connection.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSetup {
    pub model: String,
    pub instructions: Arc<str>,
    pub view: Arc<View>,
    /// The model's voice; `None`: the provider's default.
    pub voice: Option<String>,
    /// A BCP 47 tag.
    pub language: Option<String>,
    /// The conversation so far, for a model without a resumption handle.
    pub history: Vec<HistoryMessage>,
    /// The provider's resumption handle.
    pub resume: Option<String>,
}

/// A message of the conversation before this connection.
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

/// Commands of the bridge to the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Typed input of the user.
    Text(String),
    /// The microphone is off: no audio follows until it is on again.
    Muted(bool),
    /// A text of the server that the model answers, such as a late result of a call.
    Context(String),
    /// The result of a call of this connection.
    Result {
        id: String,
        name: String,
        content: Arc<Value>,
    },
    /// Speak this text outside of the conversation, while a call runs.
    Filler(String),
    /// Stop speaking. `ms` of the item were played.
    Interrupt {
        item: Option<String>,
        ms: u64,
    },
    /// The answer to a delegation; without an id, a text to speak.
    Commentary {
        delegation: Option<String>,
        text: String,
    },
    Close,
}

/// The model's events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The connection is set up.
    Ready,
    /// PCM at the provider's output rate, with the provider's id of the item.
    Audio {
        item: Option<String>,
        pcm: Vec<u8>,
    },
    /// The user begins to speak.
    SpeechStarted,
    /// A piece of the user's transcript. With `is_final` it is the whole utterance, which replaces the pieces.
    UserText {
        text: String,
        is_final: bool,
    },
    AssistantText(String),
    /// The user has interrupted the model.
    Interrupted,
    Calls(Vec<ModelCall>),
    /// The model has cancelled these calls.
    CallsCancelled(Vec<String>),
    /// The model has answered, and waits for the user.
    TurnComplete,
    Delegated {
        id: String,
    },
    /// The provider announces the end of the connection.
    GoingAway {
        left: Duration,
    },
    /// A handle to resume the conversation; `None`: not available now.
    Resumable(Option<String>),
    /// The provider reports an error and continues.
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

/// Reads and writes one provider's messages. No I/O.
pub(crate) trait Codec: Send {
    /// The messages that open the connection; [`Event::Ready`] follows.
    fn open(&mut self, output: &mut CodecOutput);
    /// A piece of the user's audio.
    fn audio(&mut self, pcm: &[u8], output: &mut CodecOutput);
    fn command(&mut self, command: Command, output: &mut CodecOutput);
    fn message(&mut self, message: &Value, output: &mut CodecOutput);
    /// Whether the model would speak a [`Command::Filler`] now.
    fn can_say_filler(&self) -> bool {
        false
    }
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

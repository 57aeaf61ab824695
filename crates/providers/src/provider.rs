//! The table of providers, and what each row consists of.

use serde_json::{Map, Value};
use toolwright_contract::ToolSpec;
use toolwright_contract::suggest::nearest;

use crate::assembler::{Assembler, ReadEvent};
use crate::frames::{FrameDecoder, Framing};
use crate::lower::Dialect;
use crate::{Call, ToolResult, View};
use crate::{anthropic, gemini, gemini_native, mcp, ollama, openai_chat, openai_realtime, openai_responses};

/// All providers. A new one is a file and a row here.
pub const PROVIDERS: &[Provider] = &[
    openai_chat::PROVIDER,
    openai_responses::PROVIDER,
    openai_realtime::PROVIDER,
    anthropic::PROVIDER,
    ollama::PROVIDER,
    gemini::PROVIDER,
    gemini_native::PROVIDER,
    mcp::PROVIDER,
];

/// One provider: what its API accepts and returns.
#[derive(Debug)]
pub struct Provider {
    /// As on the command line.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// How many tools one request can declare.
    pub max_tools: Option<usize>,
    /// How events are separated in its stream.
    pub framing: Framing,
    pub(crate) accepts_name: fn(&str) -> bool,
    pub(crate) dialect: &'static Dialect,
    pub(crate) declare: fn(Declaration<'_>) -> Value,
    pub(crate) wrap: fn(Vec<Value>) -> Value,
    pub(crate) read: fn(&Value) -> Vec<Call>,
    pub(crate) read_event: ReadEvent,
    pub(crate) write: fn(&[ToolResult<'_>]) -> Vec<Value>,
}

/// A tool whose schema is lowered to the provider's dialect.
#[derive(Debug)]
pub(crate) struct Declaration<'a> {
    pub spec: &'a ToolSpec,
    /// That of the tool, and the constraints that the schema cannot express.
    pub description: String,
    pub parameters: Map<String, Value>,
}

/// There is no provider with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{0}`{near}; there are {list}", near = suggestion(.0), list = names())]
pub struct UnknownProvider(pub String);

/// The provider with this name.
pub fn provider(name: &str) -> Result<&'static Provider, UnknownProvider> {
    PROVIDERS
        .iter()
        .find(|provider| provider.name == name)
        .ok_or_else(|| UnknownProvider(name.chars().take(100).collect()))
}

/// The provider whose name begins with the word, or is the nearest: `openai` suggests `openai-chat`.
fn suggestion(name: &str) -> String {
    let begins = PROVIDERS.iter().find(|provider| !name.is_empty() && provider.name.starts_with(name));
    let found = begins.map(|provider| provider.name);
    let found = found.or_else(|| nearest(name, PROVIDERS.iter().map(|provider| provider.name)));
    found.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

fn names() -> String {
    let names: Vec<String> = PROVIDERS.iter().map(|provider| format!("`{}`", provider.name)).collect();
    names.join(", ")
}

impl Provider {
    /// The tools as the provider's request declares them, and what this form cannot express.
    pub fn view<'a>(&self, tools: impl IntoIterator<Item = &'a ToolSpec>) -> View {
        View::new(self, tools)
    }

    /// Whether the provider accepts a tool of this name.
    pub fn accepts_name(&self, name: &str) -> bool {
        (self.accepts_name)(name)
    }

    /// Whether the provider accepts a parameter of this name.
    pub fn accepts_parameter(&self, name: &str) -> bool {
        self.dialect.accepts_parameter.is_none_or(|accepts| accepts(name))
    }

    /// The calls of a whole response.
    pub fn read(&self, response: &Value) -> Vec<Call> {
        (self.read)(response)
    }

    /// Decodes the bytes of a streamed response into events.
    pub fn frame_decoder(&self) -> FrameDecoder {
        FrameDecoder::new(self.framing)
    }

    /// Assembles calls from the events of a streamed response.
    pub fn assembler(&self) -> Assembler {
        Assembler::new(self.read_event)
    }

    /// The messages with the results of all calls of one response.
    pub fn write(&self, results: &[ToolResult<'_>]) -> Vec<Value> {
        (self.write)(results)
    }
}

impl Declaration<'_> {
    /// The name, the description and the parameters, which are called `key`.
    pub fn into_object(self, key: &str) -> Value {
        let name = self.spec.tool_id.as_str().into();
        object([("name", name), ("description", self.description.into()), (key, self.parameters.into())])
    }
}

/// An object of members that are moved into it; `json!` would copy them.
pub(crate) fn object<'m>(members: impl IntoIterator<Item = (&'m str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Whether a name consists of ASCII letters, digits and the `signs`, at most `max_bytes`.
pub(crate) fn is_name(name: &str, max_bytes: usize, signs: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    !name.is_empty() && name.len() <= max_bytes && name.chars().all(is_allowed)
}

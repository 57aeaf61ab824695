//! The table of providers, and what each row is made of.

use serde_json::{Map, Value};
use toolwright_contract::ToolSpec;

use crate::assemble::{Assembler, Pieces};
use crate::frames::{Frames, Framing};
use crate::lower::Policy;
use crate::{Answer, Call, View};
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

/// What one provider's API expects and gives.
#[derive(Debug)]
pub struct Provider {
    /// As on the command line.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// How many tools one request may declare.
    pub most_tools: Option<usize>,
    /// How its stream is cut into events.
    pub framing: Framing,
    pub(crate) takes_name: fn(&str) -> bool,
    pub(crate) policy: &'static Policy,
    pub(crate) declare: fn(Declared<'_>) -> Value,
    pub(crate) wrap: fn(Vec<Value>) -> Value,
    pub(crate) read: fn(&Value) -> Vec<Call>,
    pub(crate) take: fn(&mut Pieces, &Value),
    pub(crate) write: fn(&[Answer<'_>]) -> Vec<Value>,
}

/// A tool whose schema has been lowered to what the provider takes.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    pub spec: &'a ToolSpec,
    /// The tool's, and what its schema could not say.
    pub description: String,
    pub parameters: Map<String, Value>,
}

/// No provider has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{0}`; there are {list}", list = names())]
pub struct UnknownProvider(pub String);

/// The provider with this name.
pub fn provider(name: &str) -> Result<&'static Provider, UnknownProvider> {
    PROVIDERS
        .iter()
        .find(|provider| provider.name == name)
        .ok_or_else(|| UnknownProvider(name.chars().take(100).collect()))
}

fn names() -> String {
    let names: Vec<String> = PROVIDERS.iter().map(|provider| format!("`{}`", provider.name)).collect();
    names.join(", ")
}

impl Provider {
    /// The tools as the provider's request declares them, with all that this form cannot say.
    pub fn view<'a>(&self, tools: impl IntoIterator<Item = &'a ToolSpec>) -> View {
        View::new(self, tools)
    }

    /// Whether the provider takes a tool of this name.
    pub fn takes_name(&self, name: &str) -> bool {
        (self.takes_name)(name)
    }

    /// Whether the provider takes a parameter of this name.
    pub fn takes_parameter(&self, name: &str) -> bool {
        self.policy.names.is_none_or(|takes| takes(name))
    }

    /// The calls of a whole response.
    pub fn read(&self, response: &Value) -> Vec<Call> {
        (self.read)(response)
    }

    /// Puts the events of a streamed response together from its bytes.
    pub fn frames(&self) -> Frames {
        Frames::new(self.framing)
    }

    /// Puts calls together from the events of a streamed response.
    pub fn assembler(&self) -> Assembler {
        Assembler::new(self.take)
    }

    /// The messages that tell the model what its calls came to. All calls of one response belong together.
    pub fn write(&self, answers: &[Answer<'_>]) -> Vec<Value> {
        (self.write)(answers)
    }
}

/// An object of members that are moved into it; `json!` would copy them.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// ASCII letters and digits and the `signs`, at most `longest`.
pub(crate) fn is_name(name: &str, longest: usize, signs: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    !name.is_empty() && name.len() <= longest && name.chars().all(fits)
}

/// Names in all of OpenAI's APIs.
pub(crate) fn openai_name(name: &str) -> bool {
    is_name(name, 64, "_-")
}

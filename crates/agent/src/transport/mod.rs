//! The connections to models. Each provider has one file, which writes requests and reads events. Timeouts, retries,
//! limits and errors are shared.

mod anthropic;
mod gemini;
mod http;
mod ollama;
mod openai_chat;
mod openai_responses;
mod request_parts;
mod step_reader;

use serde_json::Value;

pub use http::RemoteModel;
pub(crate) use http::ResponseStream;
pub(crate) use step_reader::StepReader;

use crate::model::ModelRequest;

/// One provider's API.
#[derive(Debug)]
pub(crate) struct Transport {
    /// A name of `toolwright_providers::PROVIDERS`.
    pub provider: &'static str,
    /// Without a trailing `/`.
    pub base_url: &'static str,
    /// The usual environment variable of the key.
    pub key_env: Option<&'static str>,
    /// The default model.
    pub default_model: Option<&'static str>,
    /// The path of the streaming request, after the base URL.
    pub path: fn(model: &str) -> String,
    /// The headers that carry the key.
    pub headers: fn(key: Option<&str>) -> Vec<(&'static str, String)>,
    /// Whether the API can require a call.
    pub can_require_calls: bool,
    pub body: fn(model: &str, request: &ModelRequest) -> Value,
    /// Reads one event, except for the calls in it.
    pub read: fn(&mut StepReader, &Value),
}

/// All transports. A new one is a file and a row here.
pub(crate) const TRANSPORTS: &[Transport] = &[
    openai_chat::TRANSPORT,
    openai_responses::TRANSPORT,
    anthropic::TRANSPORT,
    gemini::TRANSPORT,
    ollama::TRANSPORT,
];

/// The transport of a provider; the error lists the providers that have one.
pub(crate) fn transport(provider: &str) -> Result<&'static Transport, String> {
    TRANSPORTS.iter().find(|transport| transport.provider == provider).ok_or_else(|| {
        let names: Vec<String> = TRANSPORTS.iter().map(|row| format!("`{}`", row.provider)).collect();
        let name: String = provider.chars().take(100).collect();
        format!("there is no agent for the provider `{name}`; there are {} and `offline`", names.join(", "))
    })
}

/// `Authorization: Bearer`, as OpenAI's and Anthropic's APIs take it.
fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
}

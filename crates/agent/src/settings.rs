//! The settings of the agent. The cli reads them from `[agent]`; this crate reads neither environment nor files.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwright_contract::Mode;
use toolwright_orchestrator::capabilities::Secret;
use toolwright_registry::prompt::{Limits, SharedPromptFiles};

/// The settings that do not depend on the model.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// Maximum number of requests to the model in one turn.
    pub max_steps: u32,
    /// Whether the first step of a turn may answer without a call.
    pub tool_choice: ToolChoice,
    /// Maximum number of tokens in one response. `None`: the provider's default.
    pub max_output_tokens: Option<u32>,
    /// Approximate maximum number of tokens of a request; longer histories are shortened.
    pub max_input_tokens: u32,
    /// Maximum size of a user message, including its pictures.
    pub max_message_bytes: usize,
    /// How long a turn continues without a listener.
    pub grace: Duration,
    pub prompt_files: SharedPromptFiles,
    /// The limits in force, which the prompt states.
    pub limits: Limits,
    pub voice_limits: Limits,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            max_steps: 12,
            tool_choice: ToolChoice::Auto,
            max_output_tokens: None,
            max_input_tokens: 100_000,
            max_message_bytes: 4 << 20,
            grace: Duration::from_secs(60),
            prompt_files: SharedPromptFiles::default(),
            limits: Limits::default_for(Mode::Text),
            voice_limits: Limits::default_for(Mode::Voice),
        }
    }
}

/// Whether the model decides if it calls a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    #[default]
    Auto,
    /// The first step of each turn must call a tool; the provider's API enforces it. Small models otherwise answer
    /// from memory, or describe the call instead of making it.
    Required,
}

/// A model behind an HTTP API.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// `openai-chat`, `openai-responses`, `anthropic`, `gemini` or `ollama`.
    pub provider: String,
    pub model: String,
    /// The address of the API; `None`: the provider's own.
    pub base_url: Option<String>,
    /// `None` for servers without authentication.
    pub key: Option<Secret>,
    pub timeouts: Timeouts,
}

/// Timeouts and retries of requests to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// Until the first byte of a response. A model on a small machine may need minutes to read its prompt.
    pub first_byte: Duration,
    /// Between two parts of a response.
    pub idle: Duration,
    /// Maximum number of retries before the first byte of a response.
    pub retries: u32,
    /// The delay before the first retry; doubled for each further one.
    pub backoff: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            retries: 3,
            backoff: Duration::from_millis(500),
        }
    }
}

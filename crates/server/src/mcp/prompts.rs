//! The prompts `text` and `voice`: the system prompts of sessions of that mode.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, Prompt, PromptMessage, Role};
use toolwright_contract::Mode;
use toolwright_contract::suggest::did_you_mean;
use toolwright_registry::prompt::{Limits, PromptFiles, compose};
use toolwright_registry::toolset::Toolset;

/// The sources of the prompts, besides the toolset.
#[derive(Debug, Clone)]
pub struct Prompts {
    /// `prompts/core.md`.
    pub core: String,
    /// `prompts/voice-behavior.md`.
    pub voice_behavior: String,
    /// The limits in force.
    pub text: Limits,
    pub voice: Limits,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            core: String::new(),
            voice_behavior: String::new(),
            text: Limits::default_for(Mode::Text),
            voice: Limits::default_for(Mode::Voice),
        }
    }
}

pub(super) fn list() -> Vec<Prompt> {
    let prompt = |mode: Mode| {
        let description =
            format!("The system prompt of a {mode} session: the team's rules, the tools, the agent loop.");
        Prompt::new(mode.as_str(), Some(description), None)
    };
    vec![prompt(Mode::Text), prompt(Mode::Voice)]
}

/// The prompt, with the tools that a principal with these roles may use.
pub(super) fn get(
    prompts: &Prompts,
    toolset: &Toolset,
    roles: &[String],
    name: &str,
) -> Result<GetPromptResult, ErrorData> {
    let mode = Mode::from_word(name).ok_or_else(|| {
        let message = format!("There is no prompt `{name}`: {}", did_you_mean(name, Mode::WORDS));
        ErrorData::invalid_params(message, None)
    })?;
    let limits = match mode {
        Mode::Text => prompts.text,
        Mode::Voice => prompts.voice,
    };
    let files = PromptFiles { core: &prompts.core, voice_behavior: &prompts.voice_behavior };
    let text = compose(toolset, mode, Some(roles), files, limits);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

//! The prompts `text` and `voice`: the system prompts of sessions of that mode.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, Prompt, PromptMessage, Role};
use toolwright_contract::Mode;
use toolwright_contract::suggest::did_you_mean;
use toolwright_orchestrator::Runtime;
use toolwright_orchestrator::store::SessionRecord;

use super::state::McpState;

pub(super) fn list() -> Vec<Prompt> {
    let prompt = |mode: Mode| {
        let description =
            format!("The system prompt of a {mode} session: the team's rules, the tools, the agent loop.");
        Prompt::new(mode.as_str(), Some(description), None)
    };
    vec![prompt(Mode::Text), prompt(Mode::Voice)]
}

/// The prompt that this session would have in the mode that `name` names.
pub(super) fn get(
    state: &McpState,
    runtime: &Runtime,
    session: &SessionRecord,
    name: &str,
) -> Result<GetPromptResult, ErrorData> {
    let mode = Mode::from_word(name).ok_or_else(|| {
        let message = format!("There is no prompt `{name}`: {}", did_you_mean(name, Mode::WORDS));
        ErrorData::invalid_params(message, None)
    })?;
    let session = SessionRecord { mode, ..session.clone() };
    let text = state.prompts.compose(&state.orchestrator, runtime, &session);
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

//! `GET /prompt`: the system prompt of a new session of the caller, per mode.

use toolwright_console::Page;
use toolwright_console::format::count;
use toolwright_console::parts::Code;
use toolwright_console::prompt::{ModeLink, PromptPage, estimate_tokens};
use toolwright_contract::Mode;

use super::{layout, page};
use crate::request::{ApiRequest, ApiResult, new_session};
use crate::rest::tools::parse_mode;

/// Longer prompts are cut: one with thousands of tools makes a page slow.
const MAX_BYTES: usize = 200_000;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [mode] = request.query(["mode"])?;
    let mode = mode.as_deref().map(parse_mode).transpose()?.unwrap_or(Mode::Text);
    let orchestrator = &request.app.orchestrator;
    let session = orchestrator.ephemeral_session(new_session(request.principal()?, mode));
    let runtime = orchestrator.current();
    let tools = orchestrator.visible_tools(&runtime, &session).len() as u64;
    let prompt = request.app.options.prompts.compose(orchestrator, &runtime, &session);
    let link = |word: &&'static str| ModeLink { mode: word, is_current: *word == mode.as_str() };
    page(&PromptPage {
        layout: layout(&request, Page::Prompt, "Prompt").await?,
        modes: Mode::WORDS.iter().map(link).collect(),
        tools: count(tools),
        characters: count(prompt.chars().count() as u64),
        tokens: count(estimate_tokens(&prompt)),
        prompt: Code::limited(format!("Prompt in {mode}"), prompt, MAX_BYTES)
            .with_whole(format!("/v1/prompt?mode={mode}")),
    })
}

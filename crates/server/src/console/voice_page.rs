//! `GET /talk`: a conversation by voice. The page talks to `/voice`; without a voice model it offers to write.

use toolwright_console::format::shorten;
use toolwright_console::parts::{Notice, Tone};
use toolwright_console::voice::{VoicePage, VoiceTool};
use toolwright_console::{Layout, Page};
use toolwright_contract::Mode;
use toolwright_orchestrator::DESCRIBE;
use toolwright_registry::toolset::Tool;

use super::{layout, page};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult, new_session};

const MAX_TOOLS: usize = 8;
/// The most characters of a summary.
const MAX_SUMMARY: usize = 300;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    let voice = request.app.options.voice.as_ref();
    let scripts: &[&str] = if voice.is_some() { &["voice-page.js"] } else { &["chat.js"] };
    let layout = Layout { scripts, ..layout(&request, Page::Voice, "Voice").await? };
    let (tools, more_tools) = tools(&request)?;
    page(&VoicePage {
        layout,
        subline: voice.map_or_else(
            || "Voice is not configured.".to_owned(),
            |voice| format!("{}, with the tools of this server.", voice.model()),
        ),
        notices: if voice.is_some() { Vec::new() } else { vec![how_to_set_up()] },
        has_model: voice.is_some(),
        tools,
        more_tools,
    })
}

fn how_to_set_up() -> Notice {
    let text = "Set provider = \"gemini-live\" (or \"openai-realtime\", \"gpt-live\") under [voice] in toolwright.toml, \
                and start the server with its key:";
    let fix = "GEMINI_API_KEY=… toolwright serve";
    Notice::new(Tone::Info, "No voice model is set up.", text).with_fix(fix)
}

/// The tools that a voice session of this user may use, and how many are left out.
fn tools(request: &ApiRequest<'_>) -> Result<(Vec<VoiceTool>, usize), Problem> {
    let orchestrator = &request.app.orchestrator;
    let runtime = orchestrator.current();
    let session = orchestrator.ephemeral_session(new_session(request.principal()?, Mode::Voice));
    let visible = orchestrator.visible_tools(&runtime, &session);
    let mut usable = visible.into_iter().filter(|tool| tool.spec.tool_id != DESCRIBE);
    let first: Vec<VoiceTool> = usable.by_ref().take(MAX_TOOLS).map(row).collect();
    Ok((first, usable.count()))
}

fn row(tool: &Tool) -> VoiceTool {
    VoiceTool {
        id: tool.spec.tool_id.clone(),
        summary: shorten(&tool.summary, MAX_SUMMARY),
        asks_first: !tool.spec.requires_confirmation.is_never(),
    }
}

//! `GET /talk`: a conversation by voice. The page talks to `/voice`; without a voice model it offers to write.

use toolwright_console::parts::{Notice, Tone};
use toolwright_console::voice::{VoicePage, VoiceTool};
use toolwright_console::{Layout, Page};
use toolwright_contract::Mode;
use toolwright_registry::toolset::{Tool, Toolset};

use super::{layout, page};
use crate::request::{ApiRequest, ApiResult};

const MAX_TOOLS: usize = 8;

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    request.query([])?;
    let voice = request.app.options.voice.as_ref();
    let scripts: &[&str] = if voice.is_some() { &["voice-page.js"] } else { &["chat.js"] };
    let layout = Layout { scripts, ..layout(&request, Page::Voice, "Voice").await? };
    let toolset = request.app.orchestrator.current();
    let (tools, more_tools) = tools(toolset.toolset(), &request.principal()?.roles);
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

/// The tools that can be called by voice, and how many are left out.
fn tools(toolset: &Toolset, roles: &[String]) -> (Vec<VoiceTool>, usize) {
    let mut usable = toolset.for_mode(Mode::Voice).filter(|tool| tool.spec.admits(roles));
    let first: Vec<VoiceTool> = usable.by_ref().take(MAX_TOOLS).map(row).collect();
    (first, usable.count())
}

fn row(tool: &Tool) -> VoiceTool {
    VoiceTool {
        id: tool.spec.tool_id.clone(),
        summary: tool.summary.clone(),
        asks_first: !tool.spec.requires_confirmation.is_never(),
    }
}

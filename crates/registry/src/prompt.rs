//! The system prompt of a session: the team's prompt files, then the tools and the limits.
//! The same input gives the same bytes, so that providers' prompt caches hit.

use std::fmt::Write;
use std::sync::{Arc, PoisonError, RwLock};

use toolwright_contract::Mode;

use crate::describe::DESCRIBE;
use crate::toolset::Tool;

/// The limits of one mode, as the prompt states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub retrieval_calls: u32,
    pub top_k: u32,
    pub retrieval_soft_limit_ms: u32,
}

impl Limits {
    /// The defaults of a mode.
    pub const fn default_for(mode: Mode) -> Self {
        match mode {
            Mode::Voice => Self { retrieval_calls: 2, top_k: 3, retrieval_soft_limit_ms: 800 },
            Mode::Text => Self { retrieval_calls: 5, top_k: 10, retrieval_soft_limit_ms: 2000 },
        }
    }
}

/// The texts of the team's prompt files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptFiles {
    /// `prompts/core.md`.
    pub core: String,
    /// `prompts/voice-behavior.md`; used in voice only.
    pub voice_behavior: String,
}

/// The prompt files that all prompts of a process are composed of. They can be replaced while it runs.
#[derive(Debug, Clone, Default)]
pub struct SharedPromptFiles(Arc<RwLock<Arc<PromptFiles>>>);

impl SharedPromptFiles {
    pub fn new(files: PromptFiles) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(files))))
    }

    pub fn current(&self) -> Arc<PromptFiles> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them for all prompts that are composed from now on.
    pub fn replace(&self, files: PromptFiles) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(files);
    }
}

/// Composes the prompt of a session with these tools, which are of this version of the toolset.
pub fn compose<'t>(
    version: &str,
    tools: impl IntoIterator<Item = &'t Tool>,
    mode: Mode,
    files: &PromptFiles,
    limits: Limits,
) -> String {
    let mut parts = vec![without_title(&files.core)];
    if mode == Mode::Voice {
        parts.push(without_title(&files.voice_behavior));
    }
    parts.retain(|part| !part.is_empty());
    parts.push(list(version, tools));
    parts.push(agent_loop(mode, limits));
    parts.join("\n\n") + "\n"
}

fn list<'t>(version: &str, tools: impl IntoIterator<Item = &'t Tool>) -> String {
    let mut out = format!("# Available Tools (v{version})");
    for tool in tools {
        // Writing to a String cannot fail.
        let _ = write!(out, "\n\n**{}** ({}): {}", tool.spec.tool_id, tool.spec.category, tool.summary);
    }
    out
}

/// The text without its first level-1 heading. A `#` inside a code fence is not a heading.
fn without_title(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut removed = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let is_title = fence.is_none() && (line == "#" || line.starts_with("# "));
        if is_title && !removed {
            removed = true;
        } else {
            kept.push(line);
        }
    }
    kept.join("\n").trim().to_owned()
}

/// Rules, not numbered steps: small models repeat steps to the user as a plan instead of calling a tool.
fn agent_loop(mode: Mode, limits: Limits) -> String {
    let Limits { retrieval_calls, top_k, retrieval_soft_limit_ms } = limits;
    let calls = if retrieval_calls == 1 { "1 call".to_owned() } else { format!("{retrieval_calls} calls") };
    let (cite, commit, closing) = match mode {
        Mode::Voice => (
            "Answer in a sentence or two from the fields you got, and name the record that you rely on.",
            "Commit an action only when the user has approved it or policy allows it.",
            format!(
                "In voice:\n- At most {calls} to retrieval tools in a turn, `top_k` at most {top_k}, each within about {retrieval_soft_limit_ms} ms.\n- Fetch by id when you have the id; it is faster than searching.\n- No chains of searches: answer from what you have, or ask."
            ),
        ),
        Mode::Text => (
            "Answer from the fields you got; cite record ids, and URLs where they are given.",
            "Commit an action only when the user has approved it.",
            format!(
                "In text:\n- At most {calls} to retrieval tools in a turn, `top_k` at most {top_k}, each within about {retrieval_soft_limit_ms} ms.\n- Searching in stages is fine: narrow down, then fetch.\n- Call `{DESCRIBE}` for a tool's full documentation when its summary is not enough."
            ),
        ),
    };
    format!(
        "## Agent Loop (Retrieval First)\n\nCall tools to get the context that you need; do not describe the calls to the user.\n- When an answer needs facts, call a retrieval tool first: search in the user's words, and filter only by what they named.\n- Fetch the one or two records that matter by their ids, if the search did not return enough of them.\n- {cite}\n- If something should be done, use the planning tool first and propose it.\n- {commit}\n\nThese limits are enforced for you; a refused call says what to do instead.\n\n{closing}"
    )
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;

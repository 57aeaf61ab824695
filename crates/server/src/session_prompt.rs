//! The system prompt of a session: for MCP hosts, and for programs that run their own loop.

use toolwright_contract::Mode;
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::prompt::{Limits, SharedPromptFiles, compose};

/// The sources of the prompts, besides the toolset.
#[derive(Debug, Clone)]
pub struct Prompts {
    pub files: SharedPromptFiles,
    /// The limits in force.
    pub text: Limits,
    pub voice: Limits,
}

impl Default for Prompts {
    fn default() -> Self {
        Self {
            files: SharedPromptFiles::default(),
            text: Limits::default_for(Mode::Text),
            voice: Limits::default_for(Mode::Voice),
        }
    }
}

impl Prompts {
    /// The prompt of a session, with the tools of `runtime` that the session may use.
    pub(crate) fn compose(
        &self,
        orchestrator: &Orchestrator,
        runtime: &Runtime,
        session: &SessionRecord,
    ) -> String {
        let limits = match session.mode {
            Mode::Text => self.text,
            Mode::Voice => self.voice,
        };
        let tools = orchestrator.visible_tools(runtime, session);
        compose(&runtime.toolset().version, tools, session.mode, &self.files.current(), limits)
    }
}

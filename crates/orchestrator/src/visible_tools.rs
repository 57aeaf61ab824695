//! The tools that a session may use: every list, view and prompt shows these.

use std::sync::Arc;

use toolwright_contract::{Failure, Principal, ToolSpec};
use toolwright_registry::toolset::Tool;

use crate::gate::ToolUse;
use crate::orchestrator::Orchestrator;
use crate::runtime::Runtime;
use crate::session::NewSession;
use crate::store::SessionRecord;

impl Orchestrator {
    /// The tools that a session may use, and `reg_describe`. Lists, views and prompts of the session have these and no
    /// others; the gate of calls decides by the same function.
    pub fn visible_tools<'r>(&self, runtime: &'r Runtime, session: &SessionRecord) -> Vec<&'r Tool> {
        runtime.toolset().for_models(|tool| self.is_visible(runtime, session, &tool.spec)).collect()
    }

    /// Whether a session may use this tool of its toolset.
    pub fn is_visible(&self, runtime: &Runtime, session: &SessionRecord, spec: &ToolSpec) -> bool {
        self.check_usable(runtime, session, spec).is_ok()
    }

    pub(crate) fn check_usable(
        &self,
        runtime: &Runtime,
        session: &SessionRecord,
        spec: &ToolSpec,
    ) -> Result<(), Failure> {
        let available = runtime.availability(&spec.tool_id);
        ToolUse { spec, available, session, settings: &self.0.policy.settings, args: None }.check()
    }

    /// The refusal of a call of an unknown tool. It suggests only a tool that the session may use.
    pub(crate) fn unknown_tool(&self, runtime: &Runtime, session: &SessionRecord, name: &str) -> Failure {
        let visible = self.visible_tools(runtime, session);
        runtime.unknown_tool(name, visible.iter().map(|tool| tool.spec.tool_id.as_str()))
    }

    /// The ephemeral session that would begin like this now.
    pub fn ephemeral_session(&self, new: NewSession) -> SessionRecord {
        new.record(self.current_version().1, self.0.clock.now(), self.0.policy.session_ms)
    }

    /// A session as its current caller sees it: the roles of the caller decide, not those it began with.
    pub fn with_current_roles(
        &self,
        session: Arc<SessionRecord>,
        principal: &Principal,
    ) -> Arc<SessionRecord> {
        session.with_principal(principal)
    }
}

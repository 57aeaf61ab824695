//! The options that name a principal, for commands that show what its session may use.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use toolwright_contract::{Mode, Principal, ToolSpec};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::command::call::{CLIENT_ID, parse_session_state};
use crate::config::Config;

#[derive(Debug, Clone, Args)]
pub struct Viewer {
    /// Only the tools that a session of a principal with this role may use; repeat it for more
    #[arg(help_heading = "Session and principal", long, value_name = "ROLE")]
    role: Vec<String>,
    /// Only the tools that a session of this principal may use, by its id
    #[arg(help_heading = "Session and principal", long, value_name = "ID")]
    user: Option<String>,
    /// The principal's org
    #[arg(help_heading = "Session and principal", long, value_name = "ORG")]
    org: Option<String>,
    /// The session's state, on which the availability of tools may depend
    #[arg(help_heading = "Session and principal", long, value_name = "JSON")]
    session_state: Option<String>,
}

/// The tools that a viewer sees.
pub enum ToolSelection {
    All,
    Only(HashSet<String>),
}

impl ToolSelection {
    pub fn has(&self, spec: &ToolSpec) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.contains(&spec.tool_id),
        }
    }
}

impl Viewer {
    /// All tools, unless an option names a session; without a mode, the tools that it may use in any mode.
    pub fn visible(
        &self,
        tools: &Arc<Toolset>,
        mode: Option<Mode>,
        config: &Config,
    ) -> Result<ToolSelection> {
        let Self { role, user, org, session_state } = self;
        if role.is_empty() && user.is_none() && org.is_none() && session_state.is_none() {
            return Ok(ToolSelection::All);
        }
        let state = session_state.as_deref().map(parse_session_state).transpose()?.unwrap_or_default();
        let id = user.clone().unwrap_or_else(|| CLIENT_ID.to_owned());
        let principal = Principal { id, org: org.clone(), roles: role.clone() };
        let runtime = Runtime::builder(Arc::clone(tools), ".").build();
        let orchestrator = Orchestrator::builder(runtime.clone()).policy(config.policy()).build()?;
        let mut ids = HashSet::new();
        for mode in mode.as_ref().map_or(Mode::ALL, std::slice::from_ref) {
            let (principal, state) = (principal.clone(), state.clone());
            let new = NewSession { principal, state, ..NewSession::new(CLIENT_ID, *mode) };
            let session = orchestrator.ephemeral_session(new);
            let visible = orchestrator.visible_tools(&runtime, &session);
            ids.extend(visible.iter().map(|tool| tool.spec.tool_id.clone()));
        }
        Ok(ToolSelection::Only(ids))
    }
}

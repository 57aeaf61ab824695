//! The tools that a request may list: those of one session, those of sessions that the caller could begin, or all of
//! them for an admin. The orchestrator decides which tools a session may use.

use std::sync::Arc;

use toolwright_contract::Mode;
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Tool;

use super::tools::parse_mode;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, new_session};
use crate::route::ADMIN;

pub(crate) struct Audience<'a> {
    orchestrator: &'a Orchestrator,
    pub runtime: Runtime,
    /// A tool is listed if one of these may use it. `None`: every tool is.
    sessions: Option<Vec<Arc<SessionRecord>>>,
}

impl<'a> Audience<'a> {
    /// From the query parameters `mode`, `sessionId` and `all`.
    pub async fn of_query(
        request: &'a ApiRequest<'_>,
        mode: Option<&str>,
        session: Option<&str>,
        all: Option<&str>,
    ) -> Result<Self, Problem> {
        let orchestrator = &request.app.orchestrator;
        let mode = mode.map(parse_mode).transpose()?;
        if is_true("all", all)? {
            return Self::of_admin(request, mode, session);
        }
        if let Some(id) = session {
            let session = session_of(request, id, mode).await?;
            let runtime = orchestrator
                .runtime_for(&session)
                .await
                .ok()
                .flatten()
                .unwrap_or_else(|| orchestrator.current());
            return Ok(Self { orchestrator, runtime, sessions: Some(vec![session]) });
        }
        Self::of_principal(request, mode)
    }

    /// The console's user: an admin sees all tools.
    pub fn of_console(request: &'a ApiRequest<'_>) -> Result<Self, Problem> {
        if request.is_admin() {
            Self::of_admin(request, None, None)
        } else {
            Self::of_principal(request, None)
        }
    }

    /// The sessions that the caller could begin.
    fn of_principal(request: &'a ApiRequest<'_>, mode: Option<Mode>) -> Result<Self, Problem> {
        let orchestrator = &request.app.orchestrator;
        let principal = request.principal()?;
        let modes = mode.map_or(Mode::ALL.to_vec(), |mode| vec![mode]);
        let begin = |mode| Arc::new(orchestrator.ephemeral_session(new_session(principal, mode)));
        let sessions = Some(modes.into_iter().map(begin).collect());
        Ok(Self { orchestrator, runtime: orchestrator.current(), sessions })
    }

    fn of_admin(
        request: &'a ApiRequest<'_>,
        mode: Option<Mode>,
        session: Option<&str>,
    ) -> Result<Self, Problem> {
        if !request.is_admin() {
            return Err(Problem::new(Kind::FORBIDDEN, format!("`all=true` needs the role {ADMIN}.")));
        }
        if mode.is_some() || session.is_some() {
            let detail = "`all=true` lists every tool: leave `mode` and `sessionId` out.";
            return Err(Problem::new(Kind::BAD_REQUEST, detail));
        }
        let orchestrator = &request.app.orchestrator;
        Ok(Self { orchestrator, runtime: orchestrator.current(), sessions: None })
    }

    /// The tools in their order, and `reg_describe`.
    pub fn tools(&self) -> Vec<&Tool> {
        let is_listed = |tool: &Tool| {
            let may_use = |session: &Arc<SessionRecord>| {
                self.orchestrator.is_visible(&self.runtime, session, &tool.spec)
            };
            self.sessions.as_ref().is_none_or(|sessions| sessions.iter().any(may_use))
        };
        self.runtime.toolset().for_models(is_listed).collect()
    }
}

/// A session as its caller sees it now. Its mode is fixed.
pub(super) async fn session_of(
    request: &ApiRequest<'_>,
    id: &str,
    mode: Option<Mode>,
) -> Result<Arc<SessionRecord>, Problem> {
    let session = request.own_session(id).await?;
    if let Some(mode) = mode.filter(|mode| *mode != session.mode) {
        let detail = format!("The session's mode is {}, not {mode}. Leave out `mode`.", session.mode);
        return Err(Problem::new(Kind::CONFLICT, detail));
    }
    Ok(match request.caller()? {
        Some(principal) => request.app.orchestrator.with_current_roles(session, principal),
        None => session,
    })
}

fn is_true(name: &str, value: Option<&str>) -> Result<bool, Problem> {
    match value {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            let detail = format!("The query parameter `{name}` must be true or false, not `{other}`.");
            Err(Problem::new(Kind::BAD_REQUEST, detail))
        }
    }
}

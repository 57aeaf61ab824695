//! Who asks, and in which session: found out by the transport, handed on beside the request.

use std::sync::Arc;

use hyper::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::Extensions;
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store;

/// On whose behalf a request acts.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub principal: Arc<Principal>,
    /// The orchestrator's session of this MCP session; none for a request that stands alone.
    pub session: Option<Arc<str>>,
}

impl Caller {
    /// What the transport has put beside the request.
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Parts>().and_then(|parts| parts.extensions.get())
    }

    /// A session for this caller.
    pub fn begin(&self, id: Option<String>, mode: Mode) -> NewSession {
        let principal = (*self.principal).clone();
        NewSession { id, client_id: principal.id.clone(), principal, mode, state: serde_json::Map::new() }
    }

    /// Whether a session is this caller's.
    pub fn owns(&self, session: &store::SessionRecord) -> bool {
        session.principal.id == self.principal.id && session.principal.org == self.principal.org
    }
}

pub(super) fn unreachable(error: store::Error) -> ErrorData {
    tracing::error!("{error}");
    ErrorData::internal_error("The store cannot answer. Try again.", None)
}

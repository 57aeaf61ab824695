//! The state that all MCP sessions and requests share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};

use toolwright_contract::Mode;
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{Orchestrator, Runtime};

use super::caller::Caller;
use super::catalog::Catalog;
use super::running_calls::RunningCalls;
use super::stdio::HostOptions;
use super::tool_list::LastPrincipals;
use super::turns::TurnTracker;
use crate::request::new_session;
use crate::session_prompt::Prompts;

pub(super) struct McpState {
    pub orchestrator: Orchestrator,
    pub prompts: Prompts,
    /// The mode of all sessions.
    pub mode: Mode,
    pub turns: TurnTracker,
    /// The number of running calls.
    pub call_count: AtomicUsize,
    /// The running calls of sessions that bypass the library.
    pub running_calls: RunningCalls,
    pub last_principals: LastPrincipals,
    catalogs: RwLock<Vec<Arc<Catalog>>>,
}

impl McpState {
    pub fn new(orchestrator: Orchestrator, options: HostOptions) -> Self {
        let HostOptions { prompts, mode, turn_idle } = options;
        let (call_count, running_calls) = (AtomicUsize::new(0), RunningCalls::default());
        let turns = TurnTracker::new(turn_idle);
        let (last_principals, catalogs) = (LastPrincipals::default(), RwLock::default());
        Self { orchestrator, prompts, mode, turns, call_count, running_calls, last_principals, catalogs }
    }

    /// The session of a caller with the roles that it has now; for a stateless request, the one that it would begin.
    pub fn session_of(&self, caller: &Caller) -> Arc<SessionRecord> {
        match &caller.session {
            Some(session) => self.orchestrator.with_current_roles(Arc::clone(session), &caller.principal),
            None => Arc::new(self.orchestrator.ephemeral_session(new_session(&caller.principal, self.mode))),
        }
    }

    /// The toolset of a session; the current one for a stateless request, or if that of the session cannot be loaded.
    pub async fn runtime(&self, session: Option<&SessionRecord>) -> Runtime {
        let of_session = match session {
            Some(session) => self.orchestrator.runtime_for(session).await.ok().flatten(),
            None => None,
        };
        of_session.unwrap_or_else(|| self.orchestrator.current())
    }

    /// The declarations of a toolset.
    pub fn catalog(&self, runtime: &Runtime) -> Arc<Catalog> {
        let find = |all: &[Arc<Catalog>]| all.iter().find(|catalog| catalog.is_of(runtime)).cloned();
        if let Some(catalog) = find(&self.catalogs.read().unwrap_or_else(PoisonError::into_inner)) {
            return catalog;
        }
        let catalog = Arc::new(Catalog::new(runtime));
        let mut all = self.catalogs.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have made it meanwhile.
        if let Some(existing) = find(&all) {
            return existing;
        }
        all.retain(|catalog| catalog.is_loaded());
        all.push(Arc::clone(&catalog));
        catalog
    }
}

#[cfg(test)]
mod tests {
    use toolwright_registry::toolset::Toolset;

    use super::*;

    fn runtime() -> Runtime {
        Runtime::builder(Arc::new(Toolset::empty()), ".").build()
    }

    #[test]
    fn a_catalog_does_not_keep_its_toolset_loaded() {
        let current = runtime();
        let orchestrator = Orchestrator::builder(current.clone()).build().unwrap();
        let state = McpState::new(orchestrator, HostOptions::default());
        let older = runtime();
        let catalog = state.catalog(&older);
        assert!(Arc::ptr_eq(&catalog, &state.catalog(&older)));
        let weak = older.downgrade();
        drop(older);
        assert!(!weak.is_held() && !catalog.is_loaded());
        state.catalog(&current);
        assert_eq!(state.catalogs.read().unwrap().len(), 1);
    }
}

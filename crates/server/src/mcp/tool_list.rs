//! When the list of tools of an MCP session has changed: by a new toolset, by the session's state and turns, on which
//! the availability of tools depends, and by the current caller's roles.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use toolwright_contract::Principal;

use super::caller::Caller;
use super::state::McpState;

/// The last principal of each session whose MCP host is notified.
#[derive(Default)]
pub(super) struct LastPrincipals(Mutex<HashMap<String, watch::Sender<Arc<Principal>>>>);

impl LastPrincipals {
    fn subscribe(&self, session: &str, principal: &Arc<Principal>) -> watch::Receiver<Arc<Principal>> {
        let mut senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        senders.retain(|_, sender| !sender.is_closed());
        let sender = senders.entry(session.to_owned());
        sender.or_insert_with(|| watch::Sender::new(Arc::clone(principal))).subscribe()
    }

    /// Records the principal of a request in a session.
    pub fn note(&self, session: &str, principal: &Arc<Principal>) {
        let senders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = senders.get(session) {
            sender.send_if_modified(|last| {
                let is_changed = last.roles != principal.roles;
                last.clone_from(principal);
                is_changed
            });
        }
    }
}

/// The tools that a session may use, by toolset.
#[derive(PartialEq, Eq)]
struct Visible {
    toolset: String,
    ids: Vec<String>,
}

/// The list of tools of one session.
pub(super) struct ToolList {
    state: Arc<McpState>,
    session: String,
    installs: watch::Receiver<u64>,
    changes: watch::Receiver<()>,
    principal: watch::Receiver<Arc<Principal>>,
    /// `None` if the session could not be read.
    last: Option<Visible>,
}

impl ToolList {
    pub async fn watch(state: Arc<McpState>, session: &str, principal: &Arc<Principal>) -> Self {
        let installs = state.orchestrator.installs();
        let changes = state.orchestrator.session_changes(session);
        let principal = state.last_principals.subscribe(session, principal);
        let session = session.to_owned();
        let mut list = Self { state, session, installs, changes, principal, last: None };
        list.last = list.read().await;
        list
    }

    /// Waits until the list has changed. `None` when the server ends.
    pub async fn changed(&mut self) -> Option<()> {
        loop {
            let is_installed = tokio::select! {
                changed = self.installs.changed() => changed.map(|()| true),
                changed = self.changes.changed() => changed.map(|()| false),
                changed = self.principal.changed() => changed.map(|()| false),
            };
            let Some(now) = self.read().await else { continue };
            let before = self.last.replace(now);
            // A session moves to a newer toolset when its MCP host lists the tools, so the MCP host knows that list.
            let is_same =
                |(before, now): (Visible, &Visible)| before.toolset != now.toolset || before == *now;
            if is_installed.ok()? || !before.zip(self.last.as_ref()).is_none_or(is_same) {
                return Some(());
            }
        }
    }

    async fn read(&mut self) -> Option<Visible> {
        let principal = Arc::clone(&self.principal.borrow_and_update());
        let session = self.state.orchestrator.session(&self.session).await.ok()??;
        let runtime = self.state.runtime(Some(&session)).await;
        let toolset = session.toolset.clone();
        let session = self.state.session_of(&Caller { principal, session: Some(session) });
        let tools = self.state.orchestrator.visible_tools(&runtime, &session);
        Some(Visible { toolset, ids: tools.iter().map(|tool| tool.spec.tool_id.clone()).collect() })
    }
}

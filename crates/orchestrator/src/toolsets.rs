//! The loaded toolsets: the current one, which new sessions start with, and older ones that sessions still use.

use std::collections::HashMap;
use std::sync::PoisonError;

use tokio::sync::watch;

use crate::orchestrator::Orchestrator;
use crate::runtime::Runtime;
use crate::store::{self, Backend, SessionRecord};

pub(crate) struct Toolsets {
    current: Runtime,
    current_key: String,
    by_key: HashMap<String, Runtime>,
}

impl Toolsets {
    pub fn new(current: Runtime) -> Self {
        let current_key = key(&current);
        let by_key = HashMap::from([(current_key.clone(), current.clone())]);
        Self { current, current_key, by_key }
    }

    /// The toolsets that are held by this table alone: not current, and in use by no call.
    fn unused(&self) -> impl Iterator<Item = &String> {
        let is_unused = |(_, runtime): &(&String, &Runtime)| !runtime.is_shared();
        self.by_key.iter().filter(is_unused).map(|(key, _)| key)
    }
}

/// The key of a toolset in sessions: the version, and a digest of the handlers, which the version does not cover.
fn key(runtime: &Runtime) -> String {
    let toolset = runtime.toolset();
    let digest = toolset.content_digest.rsplit(':').next().unwrap_or_default();
    format!("{}+{}", toolset.version, &digest[..digest.len().min(12)])
}

impl Orchestrator {
    /// The toolset that new sessions start with.
    pub fn current(&self) -> Runtime {
        self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    /// The current toolset, and the key that sessions store.
    pub(crate) fn current_version(&self) -> (Runtime, String) {
        let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
        (toolsets.current.clone(), toolsets.current_key.clone())
    }

    /// The toolset of a session, while it is loaded. Without it, the session can only replay calls.
    pub fn runtime_for(&self, session: &SessionRecord) -> Option<Runtime> {
        self.runtime(&session.toolset)
    }

    pub(crate) fn runtime(&self, key: &str) -> Option<Runtime> {
        self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner).by_key.get(key).cloned()
    }

    /// Installs the toolset that new sessions start with. Earlier sessions keep theirs, which [`Self::sweep`] unloads
    /// when no session uses it any more.
    pub fn install(&self, runtime: Runtime) {
        let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
        toolsets.current_key = key(&runtime);
        let key = toolsets.current_key.clone();
        toolsets.by_key.insert(key, runtime.clone());
        toolsets.current = runtime;
        drop(toolsets);
        self.0.installed.send_modify(|count| *count += 1);
    }

    /// Moves a session to the current toolset, for a client that has read the current list of tools.
    pub async fn adopt_current_toolset(&self, session: &str) -> store::Result<()> {
        // Held until the session is stored: a toolset that is in use is not unloaded.
        let (_runtime, key) = self.current_version();
        self.change(session, |session| session.toolset.clone_from(&key)).await
    }

    /// Reports each install.
    pub fn installs(&self) -> watch::Receiver<u64> {
        self.0.installed.subscribe()
    }

    /// Unloads the toolsets that no session and no call uses any more.
    pub(crate) async fn unload_unused(&self) -> store::Result<()> {
        let unused: Vec<String> = {
            let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
            toolsets.unused().cloned().collect()
        };
        for key in unused {
            if self.0.store.is_toolset_in_use(&key).await? {
                continue;
            }
            let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
            if toolsets.unused().any(|unused| *unused == key) {
                toolsets.by_key.remove(&key);
                drop(toolsets);
                tracing::info!(version = key, "unloaded a toolset that no session uses any more");
            }
        }
        Ok(())
    }
}

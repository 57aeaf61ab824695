//! What all MCP sessions and requests share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};

use toolwright_contract::Mode;
use toolwright_orchestrator::{Orchestrator, Runtime};

use super::catalog::Catalog;
use super::prompts::Prompts;
use super::sessions::Sessions;

pub(super) struct Shared {
    pub orchestrator: Orchestrator,
    pub prompts: Prompts,
    /// The mode of all sessions.
    pub mode: Mode,
    /// Calls at this moment.
    pub calls: AtomicUsize,
    /// Those over HTTP.
    pub sessions: Sessions,
    catalogs: RwLock<Vec<Arc<Catalog>>>,
}

impl Shared {
    pub fn new(orchestrator: Orchestrator, prompts: Prompts, mode: Mode) -> Self {
        let (calls, sessions) = (AtomicUsize::new(0), Sessions::default());
        Self { orchestrator, prompts, mode, calls, sessions, catalogs: RwLock::default() }
    }

    /// The declarations of a toolset.
    pub fn catalog(&self, runtime: &Runtime) -> Arc<Catalog> {
        let known = |all: &[Arc<Catalog>]| all.iter().find(|catalog| catalog.is_of(runtime)).cloned();
        if let Some(catalog) = known(&self.catalogs.read().unwrap_or_else(PoisonError::into_inner)) {
            return catalog;
        }
        let made = Arc::new(Catalog::new(runtime));
        let mut all = self.catalogs.write().unwrap_or_else(PoisonError::into_inner);
        // Another may have been quicker.
        if let Some(catalog) = known(&all) {
            return catalog;
        }
        all.retain(|catalog| catalog.is_wanted());
        all.push(Arc::clone(&made));
        made
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
    fn declarations_do_not_keep_a_toolset_that_nobody_uses() {
        let current = runtime();
        let orchestrator = Orchestrator::builder(current.clone()).build().unwrap();
        let shared = Shared::new(orchestrator, Prompts::default(), Mode::Text);
        let older = runtime();
        let catalog = shared.catalog(&older);
        assert!(Arc::ptr_eq(&catalog, &shared.catalog(&older)));
        let told_apart = older.downgrade();
        drop(older);
        assert!(!told_apart.is_held() && !catalog.is_wanted());
        shared.catalog(&current);
        assert_eq!(shared.catalogs.read().unwrap().len(), 1);
    }
}

//! What all MCP sessions and requests share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};

use toolwright_contract::Mode;
use toolwright_orchestrator::{Orchestrator, Runtime};

use super::catalog::Catalog;
use super::prompts::Prompts;

/// Toolsets whose declarations are kept; older ones are made anew for sessions that still hold them.
const KEPT: usize = 4;

pub(super) struct Shared {
    pub orchestrator: Orchestrator,
    pub prompts: Prompts,
    /// The mode of all sessions.
    pub mode: Mode,
    /// Calls at this moment.
    pub calls: AtomicUsize,
    catalogs: RwLock<Vec<Arc<Catalog>>>,
}

impl Shared {
    pub fn new(orchestrator: Orchestrator, prompts: Prompts, mode: Mode) -> Self {
        Self { orchestrator, prompts, mode, calls: AtomicUsize::new(0), catalogs: RwLock::default() }
    }

    /// The declarations of a toolset.
    pub fn catalog(&self, runtime: &Runtime) -> Arc<Catalog> {
        let known = |all: &[Arc<Catalog>]| all.iter().find(|catalog| catalog.is_of(runtime)).cloned();
        if let Some(catalog) = known(&self.catalogs.read().unwrap_or_else(PoisonError::into_inner)) {
            return catalog;
        }
        let made = Arc::new(Catalog::new(runtime.clone()));
        let mut all = self.catalogs.write().unwrap_or_else(PoisonError::into_inner);
        // Another may have been quicker.
        if let Some(catalog) = known(&all) {
            return catalog;
        }
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push(Arc::clone(&made));
        made
    }
}

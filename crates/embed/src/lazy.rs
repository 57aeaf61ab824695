//! Opens the configured embedder. Opening is cheap: it checks that the model's files exist, but does not read them.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use toolwright_capabilities::Embedder;

use crate::endpoint::{self, Endpoint};
use crate::install;
use crate::minilm::LocalModel;
use crate::query_cache::QueryCache;

/// Which embedder to use.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of installed models, with one subdirectory per model.
    pub models: PathBuf,
    /// An HTTP endpoint to use instead of the local model.
    pub endpoint: Option<endpoint::Settings>,
}

/// Why there is no embedder, and how to fix it. Search falls back to keywords.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} ({help})")]
pub struct Unavailable {
    pub reason: String,
    pub help: String,
}

/// The embedder of a process. Each call to [`LazyEmbedder::get`] retries until opening succeeds, so that a model
/// installed while a server runs is used.
#[derive(Debug)]
pub struct LazyEmbedder {
    settings: Result<Settings, Unavailable>,
    opened: OnceLock<Arc<dyn Embedder>>,
}

impl LazyEmbedder {
    /// With the settings, or the error in them.
    pub fn new(settings: Result<Settings, Unavailable>) -> Self {
        Self { settings, opened: OnceLock::new() }
    }

    /// The embedder, opened on the first successful call.
    pub fn get(&self) -> Result<Arc<dyn Embedder>, Unavailable> {
        if let Some(embedder) = self.opened.get() {
            return Ok(Arc::clone(embedder));
        }
        let embedder = open(self.settings.as_ref().map_err(Clone::clone)?)?;
        Ok(Arc::clone(self.opened.get_or_init(|| embedder)))
    }
}

/// Opens the configured embedder with a cache for query vectors. The model is loaded on first use.
pub fn open(settings: &Settings) -> Result<Arc<dyn Embedder>, Unavailable> {
    if let Some(settings) = &settings.endpoint {
        let endpoint = Endpoint::new(settings.clone())
            .map_err(|reason| Unavailable { reason, help: "fix `[kb.embedder]`".to_owned() })?;
        return Ok(Arc::new(QueryCache::new(endpoint)));
    }
    let dir = install::model_dir(&settings.models);
    match install::check_sizes(&dir) {
        Ok(()) => Ok(Arc::new(QueryCache::new(LocalModel::new(dir)))),
        Err(reason) => Err(Unavailable { reason, help: format!("run `{}`", install::INSTALL_COMMAND) }),
    }
}

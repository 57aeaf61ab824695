//! The embedder that the configuration names, opened without paying for it: files are looked at, nothing is read.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use toolwright_capabilities::Embedder;

use crate::cached::Cached;
use crate::endpoint::{self, Endpoint};
use crate::install;
use crate::local::Local;

/// Which embedder, and where it is.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of installed models; each has a directory of its own in it.
    pub models: PathBuf,
    /// Asked instead of the model in the process.
    pub endpoint: Option<endpoint::Settings>,
}

/// Why there is no embedder, and what mends it. Search goes on with keywords alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub reason: String,
    pub help: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.reason, self.help)
    }
}

impl std::error::Error for Unavailable {}

/// The configured embedder. The model is loaded when it is first used; what was embedded lately is remembered.
pub fn open(settings: &Settings) -> Result<Arc<dyn Embedder>, Unavailable> {
    if let Some(settings) = &settings.endpoint {
        let endpoint = Endpoint::new(settings.clone())
            .map_err(|reason| Unavailable { reason, help: "mend `[kb.embedder]`".to_owned() })?;
        return Ok(Arc::new(Cached::new(endpoint)));
    }
    let dir = install::place(&settings.models);
    match install::status(&dir) {
        Ok(()) => Ok(Arc::new(Cached::new(Local::new(dir)))),
        Err(reason) => Err(Unavailable { reason, help: format!("run `{}`", install::COMMAND) }),
    }
}

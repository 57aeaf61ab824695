//! The embedder that the configuration names, opened without paying for it: files are looked at, nothing is read.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

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

/// Opens the configured embedder for a whole process: tries again whenever it is asked, until it is there, so that a
/// model which is installed meanwhile is taken up.
#[derive(Debug)]
pub struct Opener {
    settings: Result<Settings, Unavailable>,
    opened: OnceLock<Arc<dyn Embedder>>,
}

impl Opener {
    /// With settings, or with what is wrong with them.
    pub fn new(settings: Result<Settings, Unavailable>) -> Self {
        Self { settings, opened: OnceLock::new() }
    }

    /// The one embedder of the process, or why there is none yet.
    pub fn get(&self) -> Result<Arc<dyn Embedder>, Unavailable> {
        if let Some(embedder) = self.opened.get() {
            return Ok(Arc::clone(embedder));
        }
        let embedder = open(self.settings.as_ref().map_err(Clone::clone)?)?;
        Ok(Arc::clone(self.opened.get_or_init(|| embedder)))
    }
}

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

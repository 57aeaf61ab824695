//! `[kb] models` and `[kb.embedder]`: what computes the vectors of texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwright_embed::endpoint;
use toolwright_embed::{LazyEmbedder, Settings, Unavailable};

use super::Config;

/// Overrides `[kb] models`.
const MODELS_VARIABLE: &str = "TOOLWRIGHT_MODELS";

/// An endpoint with OpenAI's embeddings API, used instead of the model in the process.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EmbedderSection {
    pub url: String,
    pub model: String,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    pub dimensions: Option<usize>,
    pub timeout_s: Option<u32>,
}

impl Config {
    /// Whether an endpoint is used instead of the model in the process.
    pub fn has_endpoint(&self) -> bool {
        self.settings.kb.embedder.is_some()
    }
}

/// The directory of models: environment, file, or the user's data. Projects share it, since a model is large.
pub(super) fn models_directory(base: &Path, in_file: Option<&Path>) -> PathBuf {
    let from_environment = std::env::var_os(MODELS_VARIABLE).filter(|path| !path.is_empty());
    from_environment
        .map(PathBuf::from)
        .or_else(|| in_file.map(Path::to_owned))
        .or_else(|| Some(data_directory()?.join("toolwright/models")))
        .unwrap_or_else(|| base.join(".toolwright/models"))
}

pub(super) fn opener(models: PathBuf, section: Option<&EmbedderSection>) -> Arc<LazyEmbedder> {
    let endpoint = section.map(endpoint).transpose();
    Arc::new(LazyEmbedder::new(endpoint.map(|endpoint| Settings { models, endpoint })))
}

fn endpoint(section: &EmbedderSection) -> Result<endpoint::Settings, Unavailable> {
    let mut settings = endpoint::Settings::new(&section.url, &section.model);
    settings.dimensions = section.dimensions;
    if let Some(seconds) = section.timeout_s {
        settings.timeout = Duration::from_secs(seconds.max(1).into());
    }
    if let Some(name) = &section.key_env {
        let Ok(key) = std::env::var(name) else {
            let reason =
                format!("the environment variable {name} with the key for {} is not set", section.url);
            let help = format!("set {name}, which `[kb.embedder] key_env` names");
            return Err(Unavailable { reason, help });
        };
        settings.key = Some(key.into());
    }
    Ok(settings)
}

/// The platform's directory for a user's data.
fn data_directory() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return directory("LOCALAPPDATA");
    }
    let in_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    directory("XDG_DATA_HOME").or_else(|| Some(directory("HOME")?.join(in_home)))
}

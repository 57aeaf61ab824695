//! `[kb] models` and `[kb.embedder]`: what makes vectors of texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toolwright_embed::endpoint::{self, Key};
use toolwright_embed::{Settings, Unavailable};
use toolwright_orchestrator::capabilities::Embedder;

use super::Config;

/// Names the directory of models, before the file does.
const MODELS: &str = "TOOLWRIGHT_MODELS";

/// An endpoint that speaks OpenAI's embeddings API, asked instead of the model in the process.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmbedderFile {
    pub url: String,
    pub model: String,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    pub dimensions: Option<usize>,
    pub timeout_s: Option<u32>,
}

impl Config {
    /// What makes vectors, or why nothing does. Opening it costs nothing; the model is loaded on first use.
    pub fn embedder(&self) -> Result<Arc<dyn Embedder>, Unavailable> {
        let opened = self.embedder.get_or_init(|| toolwright_embed::open(&self.embedder_settings()?));
        opened.clone()
    }

    /// Whether an endpoint is asked instead of the model.
    pub fn has_endpoint(&self) -> bool {
        self.kb.embedder.is_some()
    }

    /// Where models are. One place for all projects of a user: a model is large, and always the same.
    pub fn models(&self) -> PathBuf {
        let named = std::env::var_os(MODELS).filter(|path| !path.is_empty()).map(PathBuf::from);
        let in_file = || self.kb.models.as_ref().map(|path| self.base.join(path));
        let of_user = || Some(data_directory()?.join("toolwright/models"));
        named.or_else(in_file).or_else(of_user).unwrap_or_else(|| self.base.join(".toolwright/models"))
    }

    fn embedder_settings(&self) -> Result<Settings, Unavailable> {
        let endpoint = match &self.kb.embedder {
            Some(file) => Some(endpoint(file)?),
            None => None,
        };
        Ok(Settings { models: self.models(), endpoint })
    }
}

fn endpoint(file: &EmbedderFile) -> Result<endpoint::Settings, Unavailable> {
    let mut settings = endpoint::Settings::new(&file.url, &file.model);
    settings.dimensions = file.dimensions;
    if let Some(seconds) = file.timeout_s {
        settings.timeout = Duration::from_secs(seconds.max(1).into());
    }
    if let Some(name) = &file.key_env {
        let Ok(key) = std::env::var(name) else {
            let reason = format!("the key for {} is not in the environment", file.url);
            return Err(Unavailable {
                reason,
                help: format!("set {name}, which `[kb.embedder] key_env` names"),
            });
        };
        settings.key = Some(Key(key));
    }
    Ok(settings)
}

/// Where programs keep a user's data.
fn data_directory() -> Option<PathBuf> {
    let place = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return place("LOCALAPPDATA");
    }
    let in_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/share" };
    place("XDG_DATA_HOME").or_else(|| Some(place("HOME")?.join(in_home)))
}

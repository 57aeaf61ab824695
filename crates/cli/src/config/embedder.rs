//! `[kb] models` and `[kb.embedder]`: what makes vectors of texts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toml::Value;
use toolwright_embed::endpoint::{self, ApiKey};
use toolwright_embed::{LazyEmbedder, Settings, Unavailable};

use super::Config;
use super::dump::{integer, list, table, without_password};

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
    /// What opens the embedder of this process, or says why there is none. That costs nothing: the model is loaded on
    /// first use.
    pub fn embedders(&self) -> Arc<LazyEmbedder> {
        Arc::clone(&self.embedders)
    }

    /// Whether an endpoint is asked instead of the model.
    pub fn has_endpoint(&self) -> bool {
        self.endpoint.is_some()
    }

    pub(super) fn dump_kb(&self) -> Value {
        let mut settings = vec![
            ("url", without_password(&self.kb).into()),
            ("sources", list(self.kb_sources.iter().map(|path| path.display()))),
            ("models", self.models.display().to_string().into()),
        ];
        if let Some(file) = &self.endpoint {
            let mut embedder =
                vec![("url", without_password(&file.url).into()), ("model", file.model.clone().into())];
            embedder.extend(file.key_env.clone().map(|name| ("key_env", name.into())));
            embedder.extend(file.dimensions.map(|length| ("dimensions", integer(length))));
            embedder.extend(file.timeout_s.map(|seconds| ("timeout_s", integer(seconds))));
            settings.push(("embedder", table(embedder)));
        }
        table(settings)
    }
}

/// Where models are. One place for all projects of a user: a model is large, and always the same.
pub(super) fn models(base: &Path, in_file: Option<&Path>) -> PathBuf {
    let named = std::env::var_os(MODELS).filter(|path| !path.is_empty()).map(PathBuf::from);
    let of_user = || Some(data_directory()?.join("toolwright/models"));
    let here = || base.join(".toolwright/models");
    named.or_else(|| in_file.map(|path| base.join(path))).or_else(of_user).unwrap_or_else(here)
}

pub(super) fn opener(models: PathBuf, file: Option<&EmbedderFile>) -> Arc<LazyEmbedder> {
    let endpoint = file.map(endpoint).transpose();
    Arc::new(LazyEmbedder::new(endpoint.map(|endpoint| Settings { models, endpoint })))
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
        settings.key = Some(ApiKey(key));
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

//! `[images]`: the service that generates images, where they are stored, and which words need confirmation.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwright_orchestrator::capabilities::images::Options;

use super::{Config, check_http_url, check_positive};
use crate::output::Failure;

/// Prompts with one of these words need confirmation; `*` matches the rest of a word.
#[rustfmt::skip] // a list of words
const SENSITIVE_WORDS: &[&str] = &[
    "blood*", "corpse*", "drug*", "gore", "gun", "guns", "kill*", "naked", "nazi*", "nude*", "porn*", "self-harm",
    "sex", "sexy", "suicid*", "terror*", "weapon*",
];

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImagesSection {
    pub url: Option<String>,
    pub model: Option<String>,
    /// The environment variable that holds the key.
    pub key_env: String,
    pub timeout_s: u32,
    pub max_mb: u32,
    pub dir: PathBuf,
    pub sensitive_words: Vec<String>,
}

impl Default for ImagesSection {
    fn default() -> Self {
        Self {
            url: None,
            model: None,
            key_env: "TOOLWRIGHT_IMAGES_KEY".to_owned(),
            // The call of a tool takes at most 30 seconds.
            timeout_s: 28,
            max_mb: 20,
            dir: ".toolwright/images".into(),
            sensitive_words: SENSITIVE_WORDS.iter().map(|word| (*word).to_owned()).collect(),
        }
    }
}

impl ImagesSection {
    pub fn check(&self) -> Result<(), Failure> {
        check_positive("images", &[("timeout_s", self.timeout_s), ("max_mb", self.max_mb)])?;
        check_http_url("[images] url", self.url.as_deref(), "https://api.openai.com/v1")
    }
}

impl Config {
    /// How images are generated and stored. The key comes only from the environment.
    pub fn images(&self) -> Options {
        let section = &self.settings.images;
        let max_mb = usize::try_from(section.max_mb).unwrap_or(usize::MAX);
        Options {
            url: section.url.clone().filter(|url| !url.is_empty()),
            model: section.model.clone(),
            key: std::env::var(&section.key_env).ok().filter(|key| !key.is_empty()).map(Into::into),
            timeout: Duration::from_secs(section.timeout_s.into()),
            max_bytes: max_mb.saturating_mul(1 << 20),
            dir: section.dir.clone(),
            base: self.served_at.clone(),
        }
    }
}

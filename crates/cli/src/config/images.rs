//! `[images]`: the service that makes pictures, where they are kept, and which words a person is asked about.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml::Value;
use toolwright_orchestrator::capabilities::images::Options;

use super::Config;
use super::dump::{integer, list, table};
use crate::output::Failure;

/// Beside the embedded store, unless another is named.
const DIR: &str = ".toolwright/images";
const KEY_ENV: &str = "TOOLWRIGHT_IMAGES_KEY";
/// A call of a tool takes 30 seconds at the most.
const TIMEOUT_S: u32 = 28;
const MAX_MB: u32 = 20;

/// Words of prompts that a person is asked about first; `*` stands for the rest of a word.
const SENSITIVE: &[&str] = &[
    "blood*",
    "corpse*",
    "drug*",
    "gore",
    "gun",
    "guns",
    "kill*",
    "naked",
    "nazi*",
    "nude*",
    "porn*",
    "self-harm",
    "sex",
    "sexy",
    "suicid*",
    "terror*",
    "weapon*",
];

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ImagesFile {
    pub url: Option<String>,
    pub model: Option<String>,
    pub key_env: Option<String>,
    pub timeout_s: Option<u32>,
    pub max_mb: Option<u32>,
    pub dir: Option<PathBuf>,
    pub sensitive_words: Option<Vec<String>>,
}

impl ImagesFile {
    /// A setting that can never work is found here, and not when the first picture is asked for.
    pub fn check(&self) -> Result<(), Failure> {
        if self.timeout_s == Some(0) || self.max_mb == Some(0) {
            let message = "`[images]`: timeout_s and max_mb must be at least 1";
            return Err(Failure::new(message, "leave a setting out for its default"));
        }
        match self.url.as_deref() {
            Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(Failure::new(
                "`[images] url` is no address",
                "write the API's address up to its version, such as https://api.openai.com/v1",
            )),
            _ => Ok(()),
        }
    }

    pub fn sensitive_words(&self) -> Vec<String> {
        let default = || SENSITIVE.iter().map(|word| (*word).to_owned()).collect();
        self.sensitive_words.clone().unwrap_or_else(default)
    }
}

impl Config {
    /// How pictures are made and kept. The key is read from the environment, and from nowhere else.
    pub fn images(&self) -> Options {
        let file = &self.images;
        let key = std::env::var(file.key_env.as_deref().unwrap_or(KEY_ENV)).ok();
        let max_mb = usize::try_from(file.max_mb.unwrap_or(MAX_MB)).unwrap_or(usize::MAX);
        Options {
            url: file.url.clone().filter(|url| !url.is_empty()),
            model: file.model.clone(),
            key: key.filter(|key| !key.is_empty()),
            timeout: Duration::from_secs(file.timeout_s.unwrap_or(TIMEOUT_S).into()),
            max_bytes: max_mb.saturating_mul(1 << 20),
            dir: self.images_dir(),
            base: self.served_at.clone(),
        }
    }

    /// Where pictures are kept.
    pub fn images_dir(&self) -> PathBuf {
        self.base.join(self.images.dir.clone().unwrap_or_else(|| DIR.into()))
    }

    pub(super) fn dump_images(&self) -> Value {
        let (file, options) = (&self.images, self.images());
        let mut settings = vec![
            ("key_env", file.key_env.as_deref().unwrap_or(KEY_ENV).into()),
            ("timeout_s", integer(options.timeout.as_secs())),
            ("max_mb", integer(options.max_bytes >> 20)),
            ("dir", options.dir.display().to_string().into()),
            ("sensitive_words", list(file.sensitive_words())),
        ];
        settings.extend(options.url.map(|url| ("url", url.into())));
        settings.extend(options.model.map(|model| ("model", model.into())));
        table(settings)
    }
}

/// The address of a server that listens here, as others of this machine would write it.
pub(super) fn address_of(listen: SocketAddr) -> String {
    let address = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        named => named,
    };
    format!("http://{}", SocketAddr::new(address, listen.port()))
}

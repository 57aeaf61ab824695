//! `--dump-config`: the settings in force, as a file that could be read again. Passwords are left out.

use super::{Config, ServerConfig};
use crate::output::Failure;

impl Config {
    /// All settings as TOML.
    pub fn dump(&self, server: &ServerConfig) -> Result<String, Failure> {
        let mut settings = self.settings.clone();
        settings.tools.dir = Some(self.tools.clone());
        settings.store.url = without_password(&self.store);
        settings.kb.url = without_password(&self.kb);
        settings.kb.models = Some(self.models.clone());
        if let Some(embedder) = &mut settings.kb.embedder {
            embedder.url = without_password(&embedder.url);
        }
        if let Some(url) = &mut settings.agent.base_url {
            *url = without_password(url);
        }
        if let Some(url) = &mut settings.voice.url {
            *url = without_password(url);
        }
        let capacity = self.capacity();
        let number = |number: usize| u16::try_from(number).ok();
        settings.handlers.max_concurrent_per_tool = number(capacity.max_concurrent_per_tool);
        settings.handlers.max_concurrent_per_principal = number(capacity.max_concurrent_per_principal);
        let policy = self.policy();
        settings.limits.voice = (&policy.voice).into();
        settings.limits.text = (&policy.text).into();
        settings.server = server.section.clone();
        settings.telemetry = server.telemetry.clone();
        let help = "paths in the settings must be valid UTF-8";
        toml::to_string(&settings)
            .map_err(|error| Failure::new(format!("cannot print the settings: {error}"), help))
    }
}

/// `postgres://user:secret@host/db` becomes `postgres://user@host/db`.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => url.to_owned(),
    }
}

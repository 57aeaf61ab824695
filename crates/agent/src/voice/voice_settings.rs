//! `[voice]` of the configuration, and the options that follow from it. Does not read the environment.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwright_orchestrator::capabilities::http::system_tls;

use super::lexicon::YesNoWords;
use super::transport::{Endpoint, VoiceProvider, voice_provider};

/// The section `[voice]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct VoiceSection {
    /// `gemini-live`, `openai-realtime` or `gpt-live`. Unset: voice is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The address of the API (`ws:` or `wss:`), for servers other than the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable that contains the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// The model's voice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<String>,
    /// The filler while a tool runs, where the model supports it. Empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filler: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filler_after_ms: Option<u32>,
    /// Words that mean yes and no, by language, in addition to the built-in ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lexicon: BTreeMap<String, YesNoWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_per_principal: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farewell_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_client_s: Option<u32>,
}

/// The options in use.
#[derive(Debug)]
pub struct VoiceOptions {
    pub(crate) provider: &'static VoiceProvider,
    pub(crate) endpoint: Endpoint,
    pub(crate) model: String,
    pub(crate) voice: Option<String>,
    pub(crate) lexicon: BTreeMap<String, YesNoWords>,
    pub(crate) filler: Option<String>,
    pub(crate) filler_after: Duration,
    pub sessions: usize,
    pub sessions_per_principal: usize,
    pub grace: Duration,
    pub idle: Duration,
    pub max: Duration,
    pub farewell: Duration,
    /// A client that accepts no data for this long is disconnected.
    pub slow_client: Duration,
}

impl VoiceSection {
    /// Checks the section without network access.
    pub fn check(&self) -> Result<(), String> {
        let Some(provider) = &self.provider else { return Ok(()) };
        let provider = voice_provider(provider)?;
        // Checking an address does not need the system's certificates.
        let model = self.model.as_deref().unwrap_or(provider.default_model);
        check_model(model)?;
        Endpoint::new(provider, model, self.url.as_deref(), None, system_tls)?;
        let limits = [
            ("sessions", self.sessions),
            ("sessions_per_principal", self.sessions_per_principal),
            ("idle_s", self.idle_s),
            ("max_s", self.max_s),
            ("farewell_s", self.farewell_s),
            ("slow_client_s", self.slow_client_s),
        ];
        match limits.iter().find(|(_, limit)| *limit == Some(0)) {
            Some((name, _)) => Err(format!("`{name}` must be at least 1, not 0")),
            None => Ok(()),
        }
    }

    /// The options; `None` without a provider. `variable` reads the environment; empty variables count as unset.
    pub fn options(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<VoiceOptions>, String> {
        let Some(provider) = &self.provider else { return Ok(None) };
        self.check()?;
        let provider = voice_provider(provider)?;
        let name = self.key_env.as_deref().unwrap_or(provider.key_env);
        let key = variable(name).filter(|key| !key.trim().is_empty());
        // A self-hosted server may need no key.
        if key.is_none() && (self.key_env.is_some() || self.url.is_none()) {
            return Err(format!("`[voice] provider = \"{}\"` needs a key: set {name}", provider.name));
        }
        let model = self.model.clone().unwrap_or_else(|| provider.default_model.to_owned());
        let key = key.as_deref().map(str::trim);
        let endpoint = Endpoint::new(provider, &model, self.url.as_deref(), key, system_tls)?;
        let count = |setting: Option<u32>, default: u32| setting.unwrap_or(default) as usize;
        let seconds =
            |setting: Option<u32>, default: u32| Duration::from_secs(setting.unwrap_or(default).into());
        let filler = self.filler.clone().unwrap_or_else(|| "One moment, please.".to_owned());
        Ok(Some(VoiceOptions {
            provider,
            endpoint,
            model,
            voice: self.voice.clone(),
            lexicon: self.lexicon.clone(),
            filler: Some(filler).filter(|filler| !filler.trim().is_empty()),
            filler_after: Duration::from_millis(self.filler_after_ms.unwrap_or(1500).into()),
            sessions: count(self.sessions, 500),
            sessions_per_principal: count(self.sessions_per_principal, 5),
            grace: seconds(self.grace_s, 30),
            idle: seconds(self.idle_s, 120),
            max: seconds(self.max_s, 3600),
            farewell: seconds(self.farewell_s, 15),
            slow_client: seconds(self.slow_client_s, 10),
        }))
    }
}

fn check_model(model: &str) -> Result<(), String> {
    let is_valid = !model.is_empty()
        && model.len() <= 256
        && !model.contains(|c: char| c.is_control() || "?#% &".contains(c));
    if is_valid { Ok(()) } else { Err("`model` must be the name of a voice model".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(section: &str, keys: &[(&str, &str)]) -> Result<Option<VoiceOptions>, String> {
        let section: VoiceSection = serde_json::from_str(section).unwrap();
        let keys: Vec<(String, String)> =
            keys.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        section.options(&move |name| keys.iter().find(|(known, _)| known == name).map(|(_, key)| key.clone()))
    }

    #[test]
    fn a_provider_is_chosen_by_configuration_alone() {
        assert!(options("{}", &[]).unwrap().is_none());
        let found = options(r#"{"provider": "gemini-live"}"#, &[("GEMINI_API_KEY", "k")]).unwrap().unwrap();
        assert_eq!((found.provider.name, found.model.as_str()), ("gemini-live", "gemini-3.8-live"));
        let own =
            r#"{"provider": "openai-realtime", "url": "ws://127.0.0.1:1/v1", "model": "m", "filler": ""}"#;
        let found = options(own, &[]).unwrap().unwrap();
        assert_eq!((found.provider.name, found.filler), ("openai-realtime", None));
    }

    #[test]
    fn a_mistake_says_what_to_set() {
        for (section, expected) in [
            (r#"{"provider": "gemini"}"#, "`gemini-live`, `openai-realtime`, `gpt-live`"),
            (r#"{"provider": "gemini-live"}"#, "set GEMINI_API_KEY"),
            (r#"{"provider": "gpt-live", "key_env": "MY_KEY", "url": "ws://127.0.0.1:1"}"#, "set MY_KEY"),
            (r#"{"provider": "gpt-live", "url": "http://127.0.0.1:1"}"#, "`url` must be a ws or wss URL"),
            (r#"{"provider": "gpt-live", "model": "a b"}"#, "`model`"),
            (r#"{"provider": "gpt-live", "idle_s": 0}"#, "`idle_s` must be at least 1"),
        ] {
            let error = options(section, &[]).unwrap_err();
            assert!(error.contains(expected), "{section}: {error}");
        }
        let found = options(r#"{"provider": "gpt-live"}"#, &[("OPENAI_API_KEY", "sk-secret-key")]).unwrap();
        assert!(!format!("{found:?}").contains("sk-secret-key"));
    }
}

//! `[agent]` of the configuration, and the choice of the model if the section names none.

use std::time::Duration;

use reqwest::{Client, redirect};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Model;
use crate::offline;
use crate::settings::{AgentOptions, ModelSettings, Timeouts, ToolChoice};
use crate::transport::{self, Transport};

/// Timeout for detecting a running Ollama.
const OLLAMA_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of bytes read from its answer.
const MAX_LIST_BYTES: usize = 1 << 20;

/// The section `[agent]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentSection {
    /// `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama` or `offline`. Unset: see
    /// [`AgentSection::choose`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The address of the API, for servers other than the provider's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that contains the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Whether each turn must begin with a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How long a turn continues without a listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_s: Option<u32>,
    /// Maximum time until the first byte of a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_s: Option<u32>,
    /// Maximum pause within a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u32>,
}

impl AgentSection {
    /// Checks the section without network access.
    pub fn check(&self) -> Result<(), String> {
        if let Some(provider) = self.provider.as_deref().filter(|provider| *provider != offline::NAME) {
            transport::transport(provider)?;
            let model = self.model.clone().unwrap_or_else(|| "model".to_owned());
            self.remote(provider, model, None)?;
        }
        match self.max_steps {
            Some(0) => Err("`max_steps` must be at least 1, not 0".to_owned()),
            _ => Ok(()),
        }
    }

    /// The options that the section sets; the others are the defaults.
    pub fn options(&self) -> AgentOptions {
        let mut options = AgentOptions::default();
        options.max_steps = self.max_steps.unwrap_or(options.max_steps).max(1);
        options.tool_choice = self.tool_choice.unwrap_or_default();
        options.max_input_tokens = self.max_input_tokens.unwrap_or(options.max_input_tokens);
        options.max_output_tokens = self.max_output_tokens.or(options.max_output_tokens);
        options.grace = seconds(self.grace_s, options.grace);
        options
    }

    /// The model to use. Without a `provider`: that of the first key in the environment (`OPENAI_API_KEY`,
    /// `ANTHROPIC_API_KEY`, `GEMINI_API_KEY`), then a running Ollama, then the offline agent.
    ///
    /// `variable` reads the environment; empty variables count as unset.
    pub async fn choose(&self, variable: &(dyn Fn(&str) -> Option<String> + Sync)) -> Result<Model, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        match self.provider.as_deref() {
            Some(offline::NAME) => Ok(Model::Offline),
            Some(provider) => self.model_of_provider(transport::transport(provider)?, &variable).await,
            None => {
                let by_key = ["openai-responses", "anthropic", "gemini"].into_iter().find_map(|provider| {
                    let transport = transport::transport(provider).ok()?;
                    variable(transport.key_env?).map(|_| transport)
                });
                if let Some(transport) = by_key {
                    return self.model_of_provider(transport, &variable).await;
                }
                match self.running_ollama().await {
                    Some(model) => self.remote("ollama", self.model.clone().unwrap_or(model), None),
                    None => Ok(Model::Offline),
                }
            }
        }
    }

    /// The model of a configured provider, or of the provider whose key was found.
    async fn model_of_provider(
        &self,
        transport: &Transport,
        variable: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<Model, String> {
        let name = self.key_env.as_deref().or(transport.key_env);
        let key = name.and_then(variable);
        // A self-hosted server may need no key.
        let needs_key = self.key_env.is_some() || (transport.key_env.is_some() && self.base_url.is_none());
        if let (true, None, Some(name)) = (needs_key, &key, name) {
            return Err(format!("`[agent] provider = \"{}\"` needs a key: set {name}", transport.provider));
        }
        let model = match (&self.model, transport.default_model) {
            (Some(model), _) => model.clone(),
            (None, Some(model)) if self.base_url.is_none() => model.to_owned(),
            (None, _) if transport.provider == "ollama" => {
                let model = self.running_ollama().await;
                model.ok_or(
                    "Ollama does not run, or has no model: start it and pull one, or set `[agent] model`",
                )?
            }
            (None, _) => return Err("`[agent] model` must name the model".to_owned()),
        };
        self.remote(transport.provider, model, key)
    }

    /// Why the model cannot answer now, and the fix: Ollama does not run, or has not pulled it. Other providers are
    /// not asked.
    pub async fn problem_of(&self, model: &Model) -> Option<(String, String)> {
        if model.provider() != "ollama" {
            return None;
        }
        let name = model.name();
        let Some(pulled) = self.ollama_models().await else {
            let message = format!("Ollama does not answer at {}", self.ollama_address()?);
            return Some((message, "start it with `ollama serve`, or correct `[agent] base_url`".to_owned()));
        };
        let is_pulled = pulled.iter().any(|one| one == name || one.strip_suffix(":latest") == Some(name));
        let missing = || (format!("Ollama has no model `{name}`"), format!("run `ollama pull {name}`"));
        (!is_pulled).then(missing)
    }

    fn ollama_address(&self) -> Option<&str> {
        match &self.base_url {
            Some(base) => Some(base),
            None => Some(transport::transport("ollama").ok()?.base_url),
        }
    }

    fn remote(&self, provider: &str, model: String, key: Option<String>) -> Result<Model, String> {
        if self.tool_choice == Some(ToolChoice::Required)
            && !transport::transport(provider)?.can_require_calls
        {
            return Err(format!(
                "`[agent] tool_choice = \"required\"` is not possible with the provider `{provider}`, whose API cannot \
                 require a call: leave it out, or use the provider `openai-chat` if the server has that API too"
            ));
        }
        let defaults = Timeouts::default();
        Model::remote(ModelSettings {
            provider: provider.to_owned(),
            model,
            base_url: self.base_url.clone(),
            key: key.map(Into::into),
            timeouts: Timeouts {
                first_byte: seconds(self.first_byte_s, defaults.first_byte),
                idle: seconds(self.idle_s, defaults.idle),
                ..defaults
            },
        })
    }

    /// The first model of a running Ollama.
    async fn running_ollama(&self) -> Option<String> {
        self.ollama_models().await?.into_iter().next()
    }

    /// The models of a running Ollama.
    async fn ollama_models(&self) -> Option<Vec<String>> {
        let base = self.ollama_address()?;
        let client = Client::builder().redirect(redirect::Policy::none()).timeout(OLLAMA_TIMEOUT);
        let client =
            client.tls_backend_preconfigured(toolwright_orchestrator::capabilities::http::system_tls().ok()?);
        let request = client.build().ok()?.get(format!("{}/api/tags", base.trim_end_matches('/')));
        let mut response = request.send().await.ok()?;
        // A redirect is not followed, and its body is not the answer.
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_LIST_BYTES {
                return None;
            }
        }
        let list: Value = serde_json::from_slice(&body).ok()?;
        let names = list["models"].as_array()?.iter().filter_map(|model| model["name"].as_str());
        Some(names.map(str::to_owned).collect())
    }
}

fn seconds(setting: Option<u32>, default: Duration) -> Duration {
    setting.map_or(default, |seconds| Duration::from_secs(u64::from(seconds)))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpListener;

    use super::*;

    async fn choose(section: &str, variables: &[(&str, &str)]) -> Result<(String, String), String> {
        let section: AgentSection = serde_json::from_str(section).unwrap();
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let variable = move |name: &str| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let model = section.choose(&variable).await?;
        Ok((model.provider().to_owned(), model.name().to_owned()))
    }

    /// No server listens there.
    const NO_OLLAMA: &str = r#""base_url": "http://127.0.0.1:1""#;

    #[tokio::test]
    async fn the_first_key_in_the_environment_decides_and_then_the_offline_agent() {
        let keys = [("GEMINI_API_KEY", "g"), ("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")];
        assert_eq!(choose("{}", &keys).await.unwrap().0, "openai-responses");
        assert_eq!(choose("{}", &keys[..2]).await.unwrap().0, "anthropic");
        assert_eq!(choose("{}", &keys[..1]).await.unwrap().0, "gemini");
        let none = choose(&format!("{{{NO_OLLAMA}}}"), &[("OPENAI_API_KEY", " ")]).await.unwrap();
        assert_eq!(none, ("offline".to_owned(), "offline".to_owned()));
    }

    /// A server that answers each request with this status and body. Returns its address and the requests.
    async fn ollama(
        status: &'static str,
        body: &'static str,
    ) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut first = String::new();
                stream.read_line(&mut first).await.unwrap();
                sender.send(first.trim().to_owned()).unwrap();
                let length = body.len();
                let response = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        (address, requests)
    }

    #[tokio::test]
    async fn a_running_ollama_is_chosen_when_nothing_is_set() {
        let list = r#"{"models": [{"name": "qwen3:4b", "size": 1}, {"name": "llama3.2"}]}"#;
        let (address, mut requests) = ollama("200 OK", list).await;
        let section = format!(r#"{{"base_url": "{address}/"}}"#);
        let chosen = choose(&section, &[]).await.unwrap();
        assert_eq!(chosen, ("ollama".to_owned(), "qwen3:4b".to_owned()));
        assert_eq!(requests.recv().await.unwrap(), "GET /api/tags HTTP/1.1");
        let named =
            choose(&format!(r#"{{"base_url": "{address}", "model": "llama3.2"}}"#), &[]).await.unwrap();
        assert_eq!(named, ("ollama".to_owned(), "llama3.2".to_owned()));
        let provider = choose(&format!(r#"{{"base_url": "{address}", "provider": "ollama"}}"#), &[]).await;
        assert_eq!(provider.unwrap(), ("ollama".to_owned(), "qwen3:4b".to_owned()));
        // A key in the environment comes first.
        let section = format!(r#"{{"base_url": "{address}", "model": "m"}}"#);
        assert_eq!(choose(&section, &[("ANTHROPIC_API_KEY", "a")]).await.unwrap().0, "anthropic");
    }

    #[tokio::test]
    async fn an_ollama_without_a_model_and_another_server_are_not_chosen() {
        for (status, body) in [
            ("200 OK", r#"{"models": []}"#),
            ("200 OK", "<html>"),
            ("404 Not Found", r#"{"models": [{"name": "m"}]}"#),
            ("302 Found", r#"{"models": [{"name": "m"}]}"#),
        ] {
            let (address, _requests) = ollama(status, body).await;
            let chosen = choose(&format!(r#"{{"base_url": "{address}"}}"#), &[]).await.unwrap();
            assert_eq!(chosen.0, "offline", "{status} {body}");
        }
    }

    #[tokio::test]
    async fn a_named_provider_says_what_is_missing() {
        let named = choose(
            r#"{"provider": "openai-chat", "model": "m", "base_url": "http://127.0.0.1:8080/v1"}"#,
            &[],
        );
        assert_eq!(named.await.unwrap(), ("openai-chat".to_owned(), "m".to_owned()));
        for (section, expected) in [
            (r#"{"provider": "anthropic"}"#, "set ANTHROPIC_API_KEY"),
            (r#"{"provider": "openai-chat", "key_env": "MY_KEY", "model": "m"}"#, "set MY_KEY"),
            (r#"{"provider": "openai-chat", "base_url": "http://127.0.0.1:1/v1"}"#, "`[agent] model`"),
            (r#"{"provider": "openai"}"#, "`openai-chat`, `openai-responses`"),
            (r#"{"provider": "ollama", "base_url": "http://127.0.0.1:1"}"#, "Ollama does not run"),
            (r#"{"provider": "ollama", "model": "m", "base_url": "ftp://x"}"#, "`base_url`"),
            (r#"{"provider": "ollama", "model": "a b"}"#, "`model`"),
            (r#"{"provider": "ollama", "model": "m", "tool_choice": "required"}"#, "`openai-chat` if"),
        ] {
            let error = choose(section, &[]).await.unwrap_err();
            assert!(error.contains(expected), "{section}: {error}");
        }
        assert!(serde_json::from_str::<AgentSection>(r#"{"modle": "x"}"#).is_err());
        let check = |section: &str| serde_json::from_str::<AgentSection>(section).unwrap().check();
        assert_eq!(check(r#"{"provider": "offline", "max_steps": 3}"#), Ok(()));
        assert!(check(r#"{"provider": "gemeni"}"#).unwrap_err().contains("`gemini`"));
        assert!(check(r#"{"max_steps": 0}"#).unwrap_err().contains("max_steps"));
        assert!(check(r#"{"provider": "gemini", "base_url": "x"}"#).unwrap_err().contains("base_url"));
    }
}

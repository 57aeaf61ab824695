//! `[agent]`: the model that the agent uses, and how it works.

use std::sync::Arc;

use clap::Args;
use toolwright_agent::voice::VoiceAgent;
use toolwright_agent::{Agent, AgentObserver, AgentOptions, AgentSection, Model};
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;

use super::Config;
use crate::output::Failure;

/// The flag and environment variable that override `[agent]`.
#[derive(Debug, Clone, Default, Args)]
pub struct AgentFlags {
    /// The model of the agent, such as ollama/qwen3, anthropic or offline [default: `[agent]`, or the first that is
    /// found]
    #[arg(long, value_name = "PROVIDER[/MODEL]", env = "TOOLWRIGHT_AGENT")]
    agent: Option<String>,
}

impl AgentFlags {
    /// The model that is named.
    pub fn name(&self) -> Option<&str> {
        self.agent.as_deref()
    }
}

impl Config {
    /// The agent of this process. Call it in a tokio runtime.
    pub async fn agent(
        &self,
        flags: &AgentFlags,
        orchestrator: Orchestrator,
        observer: Option<Arc<dyn AgentObserver>>,
    ) -> Result<Agent, Failure> {
        let section = self.agent_section(flags);
        let model = self.model(&section).await?;
        Ok(Agent::with_observer(orchestrator, model, self.agent_options(&section), observer))
    }

    /// The voice agent beside a text agent; `None` when `[voice]` names no provider.
    pub fn voice_agent(&self, agent: &Agent) -> Result<Option<VoiceAgent>, Failure> {
        let options = self.settings.voice.options(&|name| std::env::var(name).ok()).map_err(|error| {
            let help = "fix `[voice]` in toolwright.toml, or leave it out; docs/how-to/voice.md has examples";
            Failure::new(format!("voice cannot be set up: {error}"), help)
        })?;
        Ok(options.map(|options| VoiceAgent::new(agent.clone(), options)))
    }

    /// The file's section, overridden by the flag. Address and key belong to the provider that the file names.
    fn agent_section(&self, flags: &AgentFlags) -> AgentSection {
        let mut section = self.settings.agent.clone();
        let Some(flag) = flags.agent.as_deref().filter(|flag| !flag.is_empty()) else { return section };
        let (provider, model) = match flag.split_once('/') {
            Some((provider, model)) => (provider, Some(model.to_owned())),
            None => (flag, None),
        };
        if section.provider.as_deref() != Some(provider) {
            section = AgentSection { model: None, base_url: None, key_env: None, ..section };
        }
        section.provider = Some(provider.to_owned());
        section.model = model.or(section.model);
        section
    }

    async fn model(&self, section: &AgentSection) -> Result<Model, Failure> {
        section.choose(&|name| std::env::var(name).ok()).await.map_err(|error| {
            Failure::new(
                format!("the agent cannot be set up: {error}"),
                "fix `[agent]` in toolwright.toml, or use `--agent offline`; docs/how-to/chat.md has examples",
            )
        })
    }

    fn agent_options(&self, section: &AgentSection) -> AgentOptions {
        AgentOptions {
            prompt_files: self.prompt_files(),
            limits: self.settings.limits.for_mode(Mode::Text).0,
            voice_limits: self.settings.limits.for_mode(Mode::Voice).0,
            ..section.options()
        }
    }
}

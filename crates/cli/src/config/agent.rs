//! `[agent]`: the model that the agent uses, and how it works.

use std::sync::Arc;

use clap::Args;
use toolwright_agent::voice::{VoiceAgent, VoiceOptions};
use toolwright_agent::{Agent, AgentObserver, AgentOptions, AgentSection, Model};
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;

use super::Config;
use crate::output::{self, Failure};

/// The environment variable that overrides `[agent]`.
const VARIABLE: &str = "TOOLWRIGHT_AGENT";

/// The flag and environment variable that override `[agent]`.
#[derive(Debug, Clone, Default, Args)]
pub struct AgentFlags {
    /// The model of the agent, such as ollama/qwen3, anthropic or offline [default: `[agent]`, or the first that is
    /// found]
    #[arg(long, value_name = "PROVIDER[/MODEL]", env = VARIABLE)]
    agent: Option<String>,
}

impl AgentFlags {
    /// For a command without the flag.
    pub fn from_environment() -> Self {
        Self { agent: std::env::var(VARIABLE).ok() }
    }

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
        let (model, problem) = self.model_of_agent(flags).await?;
        if let Some(Failure { message, help, .. }) = problem {
            output::warning(format_args!("{message}; {help}"));
        }
        let options = self.agent_options(&self.agent_section(flags));
        Ok(Agent::with_observer(orchestrator, model, options, observer))
    }

    /// The model of the agent, and what keeps it from answering now.
    pub async fn model_of_agent(&self, flags: &AgentFlags) -> Result<(Model, Option<Failure>), Failure> {
        let section = self.agent_section(flags);
        let model = section.choose(&|name| std::env::var(name).ok()).await.map_err(|error| {
            let named = flags.name().filter(|name| !name.is_empty());
            let (origin, fix) = match named {
                None => ("`[agent]`".to_owned(), "fix `[agent]` in toolwright.toml"),
                Some(name) if std::env::var(VARIABLE).as_deref() == Ok(name) => {
                    (format!("the environment variable {VARIABLE}={name}"), "correct or unset it")
                }
                Some(name) => (format!("`--agent {name}`"), "correct it"),
            };
            Failure::new(
                format!("the agent cannot be set up from {origin}: {error}"),
                format!("{fix}, or use `--agent offline`; docs/how-to/chat.md has examples"),
            )
        })?;
        let problem = section.problem_of(&model).await;
        Ok((model, problem.map(|(message, help)| Failure::new(message, help))))
    }

    /// Whether a flag, the environment or the file names the provider of the agent.
    pub fn names_agent(&self, flags: &AgentFlags) -> bool {
        self.agent_section(flags).provider.is_some()
    }

    /// The voice agent beside a text agent; `None` when `[voice]` names no provider.
    pub fn voice_agent(&self, agent: &Agent) -> Result<Option<VoiceAgent>, Failure> {
        Ok(self.voice_options()?.map(|options| VoiceAgent::new(agent.clone(), options)))
    }

    /// Whether the voice agent can be set up.
    pub fn check_voice(&self) -> Result<(), Failure> {
        self.voice_options().map(drop)
    }

    fn voice_options(&self) -> Result<Option<VoiceOptions>, Failure> {
        self.settings.voice.options(&|name| std::env::var(name).ok()).map_err(|error| {
            let help = "fix `[voice]` in toolwright.toml, or leave it out; docs/how-to/voice.md has examples";
            Failure::new(format!("voice cannot be set up: {error}"), help)
        })
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

    fn agent_options(&self, section: &AgentSection) -> AgentOptions {
        AgentOptions {
            prompt_files: self.prompt_files(),
            limits: self.settings.limits.for_mode(Mode::Text).0,
            voice_limits: self.settings.limits.for_mode(Mode::Voice).0,
            ..section.options()
        }
    }
}

//! The sections of `toolwright.toml` with their defaults. An unknown key is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolwright_agent::AgentSection;
use toolwright_agent::voice::VoiceSection;
use toolwright_contract::{Mode, RateLimit, object};
use toolwright_kb::relevance::DEFAULT_MIN_SCORE;
use toolwright_orchestrator::policy::ModePolicy;
use toolwright_orchestrator::store::postgres;
use toolwright_registry::prompt::Limits;

use super::embedder::EmbedderSection;
use super::images::ImagesSection;
use super::server::{ServerSection, TelemetrySection};

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "object::only")]
    pub tools: ToolsSection,
    #[serde(deserialize_with = "object::only")]
    pub prompts: PromptsSection,
    #[serde(deserialize_with = "object::only")]
    pub store: StoreSection,
    #[serde(deserialize_with = "object::only")]
    pub kb: KbSection,
    #[serde(deserialize_with = "object::only")]
    pub limits: LimitsSection,
    #[serde(deserialize_with = "object::only")]
    pub confirmation: ConfirmationSection,
    #[serde(deserialize_with = "object::only")]
    pub session: SessionSection,
    #[serde(deserialize_with = "object::only")]
    pub handlers: HandlersSection,
    #[serde(deserialize_with = "object::only")]
    pub server: ServerSection,
    #[serde(deserialize_with = "object::only")]
    pub telemetry: TelemetrySection,
    #[serde(deserialize_with = "object::only")]
    pub agent: AgentSection,
    #[serde(deserialize_with = "object::only")]
    pub voice: VoiceSection,
    #[serde(deserialize_with = "object::only")]
    pub images: ImagesSection,
    #[serde(deserialize_with = "object::only")]
    pub calendar: toolwright_calendar::Settings,
    /// The project's own formats: name → pattern.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub formats: BTreeMap<String, String>,
    /// May contain secrets, so `--dump-config` leaves it out.
    #[serde(skip_serializing, deserialize_with = "object::each")]
    pub mcp_servers: Vec<toolwright_imports::ServerSettings>,
    /// The sections of tools, by tool id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "object::each_member")]
    pub tool: BTreeMap<String, ToolSection>,
}

impl Settings {
    /// Paths in the file are relative to the directory of the file.
    pub fn resolve_paths(&mut self, base: &Path) {
        let files = self.tools.declared.iter_mut().chain(&mut self.kb.sources);
        let directories = [&mut self.prompts.dir, &mut self.server.keys, &mut self.images.dir];
        for path in files.chain(directories).chain(&mut self.tools.dir).chain(&mut self.kb.models) {
            *path = base.join(&*path);
        }
        for url in [&mut self.store.url, &mut self.kb.url] {
            if let Some((scheme @ ("sqlite" | "dir"), path)) = url.split_once(':') {
                *url = format!("{scheme}:{}", base.join(path).display());
            }
        }
        self.server.jwt.resolve_path(base);
    }
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsSection {
    /// The tools directory [default: `tools`].
    pub dir: Option<PathBuf>,
    pub declared: Vec<PathBuf>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptsSection {
    pub dir: PathBuf,
}

impl Default for PromptsSection {
    fn default() -> Self {
        Self { dir: "prompts".into() }
    }
}

/// The store of sessions, executions, confirmation requests and audit entries.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSection {
    pub url: String,
    /// The others are of PostgreSQL. The schema of all tables.
    pub schema: String,
    /// Connections for calls.
    pub connections: u16,
    /// How long the calls of a server that has died stay its own.
    pub lease_s: u32,
    pub statement_timeout_s: u32,
}

impl Default for StoreSection {
    fn default() -> Self {
        let options = postgres::Options::default();
        let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
        Self {
            url: "sqlite:.toolwright/state.db".to_owned(),
            schema: options.schema,
            connections: u16::try_from(options.connections).unwrap_or(u16::MAX),
            lease_s: seconds(options.lease),
            statement_timeout_s: seconds(options.statement_timeout),
        }
    }
}

impl StoreSection {
    pub fn postgres_options(&self) -> postgres::Options {
        postgres::Options {
            schema: self.schema.clone(),
            connections: self.connections.into(),
            lease: Duration::from_secs(self.lease_s.into()),
            statement_timeout: Duration::from_secs(self.statement_timeout_s.into()),
            ..postgres::Options::default()
        }
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct KbSection {
    pub url: String,
    pub sources: Vec<PathBuf>,
    /// Results of a search with a lower score are left out.
    #[serde(deserialize_with = "fraction")]
    pub min_score: f32,
    pub models: Option<PathBuf>,
    #[serde(deserialize_with = "object::only_some")]
    pub embedder: Option<EmbedderSection>,
}

impl Default for KbSection {
    fn default() -> Self {
        Self {
            url: "dir:.toolwright/kb".to_owned(),
            sources: Vec::new(),
            min_score: DEFAULT_MIN_SCORE,
            models: None,
            embedder: None,
        }
    }
}

fn fraction<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    let number = f32::deserialize(deserializer)?;
    match (0.0..=1.0).contains(&number) {
        true => Ok(number),
        false => Err(serde::de::Error::custom(format!("it is {number}; use a number from 0 to 1"))),
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// The longest block of a client.
    pub max_block_s: u32,
    /// The pause between two calls of an MCP host after which a turn begins; 0: every call begins one.
    pub mcp_turn_idle_s: u32,
    #[serde(deserialize_with = "object::only")]
    pub voice: ModeLimits,
    #[serde(deserialize_with = "object::only")]
    pub text: ModeLimits,
    /// The rate limit of one org, over all of its tools and clients.
    #[serde(deserialize_with = "object::only_some")]
    pub org: Option<RateLimit>,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let (voice, text) = (ModeLimits::default(), ModeLimits::default());
        Self { max_block_s: 86_400, mcp_turn_idle_s: 15, voice, text, org: None }
    }
}

impl LimitsSection {
    /// The limits in force for a mode; the defaults differ by mode.
    pub fn for_mode(&self, mode: Mode) -> (Limits, u32) {
        let (section, retries) = match mode {
            Mode::Voice => (self.voice, 0),
            Mode::Text => (self.text, 1),
        };
        let default = Limits::default_for(mode);
        let limits = Limits {
            retrieval_calls: section.retrieval_calls.unwrap_or(default.retrieval_calls),
            top_k: section.top_k.unwrap_or(default.top_k),
            retrieval_soft_limit_ms: section
                .retrieval_soft_limit_ms
                .unwrap_or(default.retrieval_soft_limit_ms),
        };
        (limits, section.retries.unwrap_or(retries))
    }
}

#[derive(Debug, Default, Clone, Copy, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModeLimits {
    pub retrieval_calls: Option<u32>,
    pub top_k: Option<u32>,
    pub retrieval_soft_limit_ms: Option<u32>,
    pub retries: Option<u32>,
}

impl From<&ModePolicy> for ModeLimits {
    fn from(policy: &ModePolicy) -> Self {
        Self {
            retrieval_calls: Some(policy.limits.retrieval_calls),
            top_k: Some(policy.limits.top_k),
            retrieval_soft_limit_ms: Some(policy.limits.retrieval_soft_limit_ms),
            retries: Some(policy.retries),
        }
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConfirmationSection {
    pub expires_after_s: u32,
    pub max_pending_per_session: u16,
    pub max_pending_per_principal: u16,
    /// A CEL condition under which calls are approved automatically.
    pub approve_when: Option<String>,
    pub may_remember: bool,
}

impl Default for ConfirmationSection {
    fn default() -> Self {
        Self {
            expires_after_s: 600,
            max_pending_per_session: 50,
            max_pending_per_principal: 1000,
            approve_when: None,
            may_remember: false,
        }
    }
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSection {
    pub expires_after_s: u32,
    pub farewell_s: u32,
}

impl Default for SessionSection {
    fn default() -> Self {
        Self { expires_after_s: 86_400, farewell_s: 15 }
    }
}

/// The limits of one call of a JavaScript handler, and how many run at a time.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlersSection {
    pub memory_mb: u16,
    pub cpu_ms: u32,
    pub output_kb: u32,
    pub pending_calls: u16,
    pub max_concurrent: u16,
    /// Half of `max_concurrent` unless it is set.
    pub max_concurrent_per_tool: Option<u16>,
    /// Three quarters of `max_concurrent` unless it is set.
    pub max_concurrent_per_principal: Option<u16>,
    pub max_nested_per_call: u16,
    pub max_waiting: u16,
    pub max_wait_ms: u32,
    /// A quarter of `max_concurrent` unless it is set.
    pub max_background: Option<u16>,
}

impl Default for HandlersSection {
    fn default() -> Self {
        Self {
            memory_mb: 64,
            cpu_ms: 1000,
            output_kb: 1024,
            pending_calls: 64,
            max_concurrent: 256,
            max_concurrent_per_tool: None,
            max_concurrent_per_principal: None,
            max_nested_per_call: 8,
            max_waiting: 1024,
            max_wait_ms: 10_000,
            max_background: None,
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolSection {
    #[serde(deserialize_with = "object::only")]
    pub http: HttpSection,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    /// The hosts that `http.fetch` of the tool may reach.
    pub allow: Vec<String>,
}

//! `toolwright.toml`: defaults < file < environment < flags, layered here and nowhere else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use toolwright_contract::Mode;
use toolwright_embed::LazyEmbedder;
use toolwright_kb::KbCapability;
use toolwright_orchestrator::capabilities::Capabilities;
use toolwright_orchestrator::capabilities::http::AllowList;
use toolwright_orchestrator::capabilities::images::BaseUrl;
use toolwright_orchestrator::policy::{ModePolicy, Policy};
use toolwright_orchestrator::{Capacity, Engine, EngineOptions, Limits as HandlerLimits};
use toolwright_registry::build::Options as BuildOptions;
use toolwright_registry::formats::Formats;
use toolwright_registry::prompt::{PromptFiles, SharedPromptFiles};
use toolwright_registry::{artifact, source};
use toolwright_server::mcp::{HostOptions, Prompts};

use crate::args::{Common, Format};
use crate::output::Failure;

mod agent;
mod dump;
mod embedder;
mod file_error;
mod images;
mod listen_address;
mod server;
mod settings;

pub use agent::AgentFlags;
pub use dump::without_password;
pub use server::{ServerConfig, ServerFlags};

use settings::Settings;

const FILE_NAME: &str = "toolwright.toml";
/// The sections that every new toolset reads again.
const RELOADED: [&str; 5] = ["tool", "tools", "formats", "mcp_servers", "prompts"];
/// Drafts and, unless they are on a CalDAV server, events.
const CALENDAR_FILE: &str = ".toolwright/calendar.db";

/// The settings in force.
#[derive(Debug)]
pub struct Config {
    pub format: Format,
    pub tools: PathBuf,
    /// Whether a flag or the file names that directory.
    names_tools: bool,
    /// `sqlite:PATH`, `postgres://…` or `memory:`.
    pub store: String,
    /// The knowledge base: `dir:PATH` or `postgres://…`.
    pub kb: String,
    /// The directory of embedding models.
    pub models: PathBuf,
    /// The project's own formats, checked.
    pub formats: Formats,
    /// The file's settings, with paths resolved.
    pub settings: Settings,
    /// The URL of the server, as its own responses give it.
    served_at: BaseUrl,
    /// Opens the embedder of this process on first use, or says why there is none.
    pub embedders: Arc<LazyEmbedder>,
    /// The file's directory, and its sections as they are written.
    base: PathBuf,
    sections: toml::Table,
    /// The flags that this was loaded with.
    common: Common,
    prompt_files: OnceLock<SharedPromptFiles>,
    engine: OnceLock<Engine>,
    capabilities: OnceLock<Arc<Capabilities>>,
    knowledge_base: OnceLock<Arc<KbCapability>>,
}

impl Config {
    /// Reads the file, if there is one, and applies the global flags and their environment variables.
    pub fn load(common: &Common, dir: Option<&Path>) -> Result<Self, Failure> {
        let ConfigFile { mut settings, sections, base } = read(common.config.as_deref())?;
        check(&settings)?;
        settings.resolve_paths(&base);
        let formats = Formats::new(settings.formats.clone())
            .map_err(|error| Failure::new(format!("`[formats]` cannot be used: {error}"), &error.help))?;
        let server = &settings.server;
        let address = server.public_url.clone().unwrap_or_else(|| url_of(server.listen));
        let models = embedder::models_directory(&base, settings.kb.models.as_deref());
        let tools =
            dir.or(common.tools.as_deref()).map(Path::to_owned).or_else(|| settings.tools.dir.clone());
        let config = Self {
            format: common.format,
            names_tools: tools.is_some(),
            tools: tools.unwrap_or_else(|| base.join("tools")),
            store: common.store.clone().unwrap_or_else(|| settings.store.url.clone()),
            kb: common.kb.clone().unwrap_or_else(|| settings.kb.url.clone()),
            served_at: BaseUrl::new(address),
            embedders: embedder::opener(models.clone(), settings.kb.embedder.as_ref()),
            models,
            formats,
            settings,
            base,
            sections,
            common: common.clone(),
            prompt_files: OnceLock::new(),
            engine: OnceLock::new(),
            capabilities: OnceLock::new(),
            knowledge_base: OnceLock::new(),
        };
        config.policy().check().map_err(|error| {
            Failure::new(
                format!("`[confirmation] approve_when` cannot be used: {error}"),
                "write a condition such as `user.id == \"robot\" && tool == \"note_add\" && args.count < 10`",
            )
        })?;
        Ok(config)
    }

    pub fn calendar_file(&self) -> PathBuf {
        self.base.join(CALENDAR_FILE)
    }

    /// A file beside `toolwright.toml`.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Whether the configuration declares or imports tools.
    pub fn has_other_tools(&self) -> bool {
        !self.settings.tools.declared.is_empty() || !self.settings.mcp_servers.is_empty()
    }

    /// Whether these are all tools: the tools directory is empty, or no directory is named and the default one does
    /// not exist.
    pub fn has_only_other_tools(&self) -> bool {
        self.has_other_tools()
            && match source::discover(&self.tools) {
                Ok(dirs) => dirs.is_empty(),
                Err(_) => !self.names_tools && !self.tools.exists(),
            }
    }

    /// The tools directory and the files of declared tools. A project with declared tools need not have the directory.
    pub fn watched_paths(&self) -> Vec<PathBuf> {
        let needs_directory = !self.has_only_other_tools() || self.tools.exists();
        let directory = needs_directory.then(|| self.tools.clone());
        directory.into_iter().chain(self.settings.tools.declared.iter().cloned()).collect()
    }

    /// What a server watches: also the configuration file and the prompts, as far as they exist.
    pub fn paths_of_server(&self) -> Vec<PathBuf> {
        let file = self.common.config.clone().unwrap_or_else(|| self.base.join(FILE_NAME));
        let others = [file, self.settings.prompts.dir.clone()].into_iter().filter(|path| path.exists());
        self.watched_paths().into_iter().chain(others).collect()
    }

    /// How the tools are compiled: into the default artifact, without a cache.
    pub fn build_options(&self) -> BuildOptions {
        BuildOptions {
            out: self.tools.join(artifact::FILE_NAME),
            tools: self.tools.clone(),
            formats: self.formats.clone(),
            cache: None,
        }
    }

    /// The engine of JavaScript handlers, shared by all toolsets of the process. Its workers are this program.
    pub fn engine(&self) -> &Engine {
        self.engine.get_or_init(|| {
            toolwright_orchestrator::engine(EngineOptions {
                worker: own_program(),
                // Calls that were stopped give back their seat before their worker has ended.
                max_calls: self.capacity().total() * 2,
                ..EngineOptions::default()
            })
        })
    }

    /// The capabilities of handlers, shared by all toolsets of the process.
    pub fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(self.capabilities.get_or_init(|| Arc::new(crate::capabilities::set_up(self))))
    }

    /// The knowledge base of handlers. It is opened on first use.
    pub fn knowledge_base(&self) -> Arc<KbCapability> {
        Arc::clone(self.knowledge_base.get_or_init(|| Arc::new(crate::capabilities::knowledge_base(self))))
    }

    /// Sets the URL that the server's responses give, once the server listens.
    pub fn serve_at(&self, listen: SocketAddr, public_url: Option<&str>) {
        self.served_at.set(public_url.map_or_else(|| url_of(listen), str::to_owned));
    }

    /// The limits and rules that the orchestrator enforces.
    pub fn policy(&self) -> Policy {
        let Settings { confirmation, session, limits, images, .. } = &self.settings;
        let mode_policy = |mode| {
            let (limits, retries) = limits.for_mode(mode);
            ModePolicy { limits, retries }
        };
        let milliseconds = |seconds: u32| i64::from(seconds) * 1000;
        Policy {
            voice: mode_policy(Mode::Voice),
            text: mode_policy(Mode::Text),
            org_rate: limits.org,
            max_block_ms: milliseconds(limits.max_block_s),
            settings: json!({ "images": { "sensitive_words": images.sensitive_words } }),
            confirmation_ms: milliseconds(confirmation.expires_after_s),
            max_pending_per_session: confirmation.max_pending_per_session.into(),
            max_pending_per_principal: confirmation.max_pending_per_principal.into(),
            approve_when: confirmation.approve_when.clone(),
            may_remember: confirmation.may_remember,
            session_ms: milliseconds(session.expires_after_s),
            farewell_ms: milliseconds(session.farewell_s),
            ..Policy::default()
        }
    }

    /// The hosts that each tool may reach by `http.fetch`.
    pub fn allowed_hosts(&self) -> Result<Vec<(String, AllowList)>, Failure> {
        let tools = self.settings.tool.iter().filter(|(_, tool)| !tool.http.allow.is_empty());
        let parse = |(id, tool): (&String, &settings::ToolSection)| {
            let list = AllowList::parse(&tool.http.allow).map_err(|error| {
                Failure::new(
                    format!("`[tool.{id}.http] allow` cannot be used: {error}"),
                    "write hosts such as \"api.example.com\" or \"127.0.0.1:8080\"",
                )
            })?;
            Ok((id.clone(), list))
        };
        tools.map(parse).collect()
    }

    /// The limits of one call of a JavaScript handler. The deadline is the tool's.
    pub fn handlers(&self) -> HandlerLimits {
        let section = &self.settings.handlers;
        let bytes = |number: u32, unit| usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(unit);
        HandlerLimits {
            memory_bytes: bytes(section.memory_mb.into(), 1 << 20),
            cpu: Duration::from_millis(section.cpu_ms.into()),
            output_bytes: bytes(section.output_kb, 1 << 10),
            total_bytes: bytes(section.output_kb, 4 << 10),
            pending_host_calls: section.pending_calls.into(),
            ..HandlerLimits::within(Duration::ZERO)
        }
    }

    /// How many handlers run at a time, and how many calls wait.
    pub fn capacity(&self) -> Capacity {
        let section = &self.settings.handlers;
        let default = Capacity::with_concurrency(section.max_concurrent.into());
        Capacity {
            max_concurrent_per_tool: section
                .max_concurrent_per_tool
                .map_or(default.max_concurrent_per_tool, usize::from),
            max_concurrent_per_principal: section
                .max_concurrent_per_principal
                .map_or(default.max_concurrent_per_principal, usize::from),
            max_nested_per_call: section.max_nested_per_call.into(),
            max_waiting: section.max_waiting.into(),
            max_wait: Duration::from_millis(section.max_wait_ms.into()),
            max_background: section.max_background.map_or(default.max_background, usize::from),
            ..default
        }
    }

    /// The options of a connection to an MCP host.
    pub fn host_options(&self, mode: Mode) -> HostOptions {
        HostOptions { prompts: self.prompts_for_hosts(), mode, turn_idle: self.mcp_turn_idle() }
    }

    /// The pause between two calls of an MCP host after which a turn begins.
    pub fn mcp_turn_idle(&self) -> Duration {
        Duration::from_secs(self.settings.limits.mcp_turn_idle_s.into())
    }

    /// The prompts for MCP hosts; empty without prompt files.
    pub fn prompts_for_hosts(&self) -> Prompts {
        let limits = &self.settings.limits;
        Prompts {
            files: self.prompt_files(),
            text: limits.for_mode(Mode::Text).0,
            voice: limits.for_mode(Mode::Voice).0,
        }
    }

    /// The prompt files, shared by all that composes prompts in this process.
    pub fn prompt_files(&self) -> SharedPromptFiles {
        self.prompt_files.get_or_init(|| SharedPromptFiles::new(self.read_prompt_files())).clone()
    }

    /// Reads the prompt files. One that is not there is empty.
    pub fn read_prompt_files(&self) -> PromptFiles {
        let read = |name| std::fs::read_to_string(self.settings.prompts.dir.join(name)).unwrap_or_default();
        PromptFiles { core: read("core.md"), voice_behavior: read("voice-behavior.md") }
    }

    /// The configuration as its file is now, for another toolset of this process. Whatever the process has opened with
    /// the old one, such as the engine, stays in use.
    pub fn read_again(&self) -> Result<Self, Failure> {
        let again = Self {
            served_at: self.served_at.clone(),
            embedders: Arc::clone(&self.embedders),
            engine: self.engine.clone(),
            capabilities: self.capabilities.clone(),
            knowledge_base: self.knowledge_base.clone(),
            prompt_files: self.prompt_files.clone(),
            ..Self::load(&self.common, None)?
        };
        Ok(again)
    }

    /// The sections that differ from those of `new`, and that a process reads at its start only.
    pub fn sections_for_a_restart(&self, new: &Self) -> Vec<String> {
        let names =
            self.sections.keys().chain(new.sections.keys().filter(|name| !self.sections.contains_key(*name)));
        let is_changed = |name: &&String| self.sections.get(*name) != new.sections.get(*name);
        names.filter(is_changed).filter(|name| !RELOADED.contains(&name.as_str())).cloned().collect()
    }
}

/// This program, also if its file was replaced since it was started.
fn own_program() -> Option<PathBuf> {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { Some(link) } else { std::env::current_exe().ok() }
}

fn check(settings: &Settings) -> Result<(), Failure> {
    let handlers = &settings.handlers;
    check_positive(
        "handlers",
        &[
            ("memory_mb", handlers.memory_mb.into()),
            ("cpu_ms", handlers.cpu_ms),
            ("output_kb", handlers.output_kb),
            ("max_concurrent", handlers.max_concurrent.into()),
            ("max_concurrent_per_tool", handlers.max_concurrent_per_tool.unwrap_or(1).into()),
            ("max_concurrent_per_principal", handlers.max_concurrent_per_principal.unwrap_or(1).into()),
            ("max_nested_per_call", handlers.max_nested_per_call.into()),
            ("max_background", handlers.max_background.unwrap_or(1).into()),
        ],
    )?;
    let store = &settings.store;
    check_positive(
        "store",
        &[
            ("connections", store.connections.into()),
            ("lease_s", store.lease_s),
            ("statement_timeout_s", store.statement_timeout_s),
        ],
    )?;
    settings.images.check()?;
    settings.agent.check().map_err(|error| {
        let help = "docs/reference/configuration.md describes the settings of `[agent]`";
        Failure::new(format!("`[agent]` cannot be used: {error}"), help)
    })?;
    settings.voice.check().map_err(|error| {
        let help = "docs/reference/configuration.md describes the settings of `[voice]`";
        Failure::new(format!("`[voice]` cannot be used: {error}"), help)
    })?;
    settings.calendar.check().map_err(|error| {
        let help = "docs/reference/configuration.md describes the settings of `[calendar]`";
        Failure::new(format!("`[calendar]` cannot be used: {error}"), help)
    })
}

/// Refuses a setting of 0 that would make every call or request fail.
fn check_positive(section: &str, settings: &[(&str, u32)]) -> Result<(), Failure> {
    match settings.iter().find(|(_, value)| *value == 0) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::new(
            format!("`[{section}] {name}` is 0, and must be at least 1"),
            "raise it, or leave it out for its default",
        )),
    }
}

fn check_http_url(setting: &str, url: Option<&str>, example: &str) -> Result<(), Failure> {
    match url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => Err(Failure::new(
            format!("`{setting}` is {url:?}, and must begin with http:// or https://"),
            format!("write a URL such as {example}"),
        )),
        _ => Ok(()),
    }
}

/// The URL of a server that listens here, as other programs of this machine would write it.
pub fn url_of(listen: SocketAddr) -> String {
    let address = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        named => named,
    };
    format!("http://{}", SocketAddr::new(address, listen.port()))
}

/// The nearest `toolwright.toml`, in this directory or above it.
fn find_file() -> PathBuf {
    let depth = std::env::current_dir().map_or(0, |here| here.components().count());
    let mut path = PathBuf::from(FILE_NAME);
    for _ in 1..depth {
        if path.exists() {
            return path;
        }
        path = Path::new("..").join(path);
    }
    if path.exists() { path } else { FILE_NAME.into() }
}

#[derive(Default)]
struct ConfigFile {
    settings: Settings,
    sections: toml::Table,
    base: PathBuf,
}

fn read(named: Option<&Path>) -> Result<ConfigFile, Failure> {
    let path = &named.map_or_else(find_file, Path::to_owned);
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(ConfigFile { base, ..ConfigFile::default() });
        }
        Err(error) => {
            let message = format!("cannot read the configuration file {}: {error}", path.display());
            let help = "name an existing file with `--config FILE`, or leave the option out";
            return Err(Failure::usage(message, help));
        }
    };
    let invalid = |error: toml::de::Error| {
        let (cause, help) = file_error::describe(&error);
        Failure::new(format!("the configuration file {} is not valid\n{cause}", path.display()), help)
    };
    let settings = toml::from_str(&text).map_err(invalid)?;
    Ok(ConfigFile { settings, sections: toml::from_str(&text).map_err(invalid)?, base })
}

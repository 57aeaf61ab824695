//! `toolwright.toml`: defaults < file < environment < flags, layered here and nowhere else.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use toolwright_contract::Mode;
use toolwright_embed::LazyEmbedder;
use toolwright_kb::KnowledgeBase;
use toolwright_orchestrator::Limits as HandlerLimits;
use toolwright_orchestrator::capabilities::Capabilities;
use toolwright_orchestrator::capabilities::http::AllowList;
use toolwright_orchestrator::capabilities::images::Address;
use toolwright_orchestrator::policy::{ModePolicy, Policy};
use toolwright_registry::prompt::Limits;
use toolwright_server::mcp::Prompts;

use crate::args::Common;
use crate::output::Failure;

mod dump;
mod embedder;
mod file;
mod images;
mod server;

pub use dump::without_password;
pub use server::Serving;

use embedder::EmbedderFile;
use file::{File, HandlersFile, LimitsFile, ModeLimitsFile, ServerFile, TelemetryFile, ToolFile};
use images::ImagesFile;

const FILE_NAME: &str = "toolwright.toml";
/// The embedded knowledge base, unless another is named.
const KB: &str = ".toolwright/kb";
/// The embedded store, unless another is named.
const STATE: &str = ".toolwright/state.db";
/// Where a server listens, unless it is told otherwise.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7300);
/// Drafts and, unless they are on a server, events.
const CALENDAR: &str = ".toolwright/calendar.db";

/// The settings in force.
#[derive(Debug)]
pub struct Config {
    pub tools: PathBuf,
    /// Whether somebody has named that directory.
    names_tools: bool,
    /// Files of declared tools.
    pub declared: Vec<PathBuf>,
    pub prompts: PathBuf,
    limits: LimitsFile,
    handlers: HandlersFile,
    tool: BTreeMap<String, ToolFile>,
    policy: Policy,
    /// `sqlite:PATH`, `postgres://…` or `memory:`.
    pub store: String,
    /// The knowledge base: `dir:PATH`.
    pub kb: String,
    /// What it is filled from.
    pub kb_sources: Vec<PathBuf>,
    server: ServerFile,
    telemetry: TelemetryFile,
    images: ImagesFile,
    /// Where the server is, as its own answers say it.
    served_at: Address,
    pub calendar: toolwright_calendar::Settings,
    /// Where models are.
    pub models: PathBuf,
    endpoint: Option<EmbedderFile>,
    embedders: Arc<LazyEmbedder>,
    /// Whose tools are imported.
    pub mcp_servers: Vec<toolwright_imports::Server>,
    /// Where the file is: its paths are relative to it.
    base: PathBuf,
    capabilities: OnceLock<Arc<Capabilities>>,
    knowledge_base: OnceLock<Arc<KnowledgeBase>>,
}

impl Config {
    /// Reads the file, if there is one, and lets the flags (and their environment variables) win.
    /// Paths in the file are relative to the file.
    pub fn load(common: &Common, dir: Option<&Path>) -> Result<Self, Failure> {
        let (file, base) = read(common.config.as_deref())?;
        let handlers = &file.handlers;
        if handlers.memory_mb == Some(0) || handlers.cpu_ms == Some(0) || handlers.output_kb == Some(0) {
            let message = "`[handlers]`: memory_mb, cpu_ms and output_kb must be at least 1";
            return Err(Failure::new(message, "leave a setting out for its default"));
        }
        file.images.check()?;
        let policy = checked(policy(&file))?;
        let address = file.server.public_url.clone();
        let address = address.unwrap_or_else(|| images::address_of(file.server.listen.unwrap_or(LISTEN)));
        let from_file =
            |path: Option<PathBuf>, default: &str| base.join(path.unwrap_or_else(|| default.into()));
        let store = common.store.clone().or(file.store.url.map(|url| relative_to(&base, &url)));
        let kb = common.kb.clone().or(file.kb.url.map(|url| relative_to(&base, &url)));
        let models = embedder::models(&base, file.kb.models.as_deref());
        let flag = dir.or(common.tools.as_deref()).map(Path::to_owned);
        Ok(Self {
            names_tools: flag.is_some() || file.tools.dir.is_some(),
            tools: flag.unwrap_or_else(|| from_file(file.tools.dir, "tools")),
            declared: file.tools.declared.iter().map(|path| base.join(path)).collect(),
            prompts: from_file(file.prompts.dir, "prompts"),
            policy,
            limits: file.limits,
            handlers: file.handlers,
            tool: file.tool,
            store: store.unwrap_or_else(|| format!("sqlite:{}", base.join(STATE).display())),
            kb: kb.unwrap_or_else(|| format!("dir:{}", base.join(KB).display())),
            kb_sources: file.kb.sources.iter().map(|path| base.join(path)).collect(),
            server: file.server,
            telemetry: file.telemetry,
            images: file.images,
            served_at: Address::new(address),
            calendar: calendar(file.calendar)?,
            embedders: embedder::opener(models.clone(), file.kb.embedder.as_ref()),
            models,
            endpoint: file.kb.embedder,
            mcp_servers: file.mcp_servers,
            base,
            capabilities: OnceLock::new(),
            knowledge_base: OnceLock::new(),
        })
    }

    /// Whether there are tools beside those of directories.
    pub fn has_other_tools(&self) -> bool {
        !self.declared.is_empty() || !self.mcp_servers.is_empty()
    }

    /// Whether they are all there is: nobody has named a directory, and there is none where one would be.
    pub fn has_only_other_tools(&self) -> bool {
        self.has_other_tools() && !self.names_tools && !self.tools.exists()
    }

    /// What handlers may ask for; the same for every toolset of the process.
    pub fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(self.capabilities.get_or_init(|| Arc::new(crate::capabilities::set_up(self))))
    }

    /// The server listens: its answers name this address, unless the operator has said another.
    pub fn serve_at(&self, listen: SocketAddr, public_url: Option<&str>) {
        self.served_at.set(public_url.map_or_else(|| images::address_of(listen), str::to_owned));
    }

    /// Where the calendar is kept.
    pub fn calendar_file(&self) -> PathBuf {
        self.base.join(CALENDAR)
    }

    /// The knowledge base that handlers reach; nothing of it is opened yet.
    pub fn knowledge_base(&self) -> Arc<KnowledgeBase> {
        Arc::clone(self.knowledge_base.get_or_init(|| Arc::new(crate::capabilities::knowledge_base(self))))
    }

    /// A file that has its place beside `toolwright.toml`.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// The numbers and rules that the orchestrator enforces.
    pub fn policy(&self) -> Policy {
        let of = |mode| {
            let retries = self.in_file(mode).retries.unwrap_or(self.policy.for_mode(mode).retries);
            ModePolicy::new(self.limits(mode), retries)
        };
        Policy { voice: of(Mode::Voice), text: of(Mode::Text), ..self.policy.clone() }
    }

    /// The ids of the tools that have settings of their own.
    pub fn tools_with_settings(&self) -> impl Iterator<Item = &str> {
        self.tool.keys().map(String::as_str)
    }

    /// What each tool may reach by `http.fetch`.
    pub fn allowed(&self) -> Result<Vec<(String, AllowList)>, Failure> {
        let lists = self.tool.iter().filter(|(_, tool)| !tool.http.allow.is_empty());
        lists
            .map(|(id, tool)| match AllowList::parse(&tool.http.allow) {
                Ok(list) => Ok((id.clone(), list)),
                Err(error) => Err(Failure::new(
                    format!("`[tool.{id}.http] allow` cannot be used: {error}"),
                    "entries are hosts such as \"api.example.com\" or \"127.0.0.1:8080\"",
                )),
            })
            .collect()
    }

    /// What one call of a JavaScript handler may use up. The deadline is the tool's.
    pub fn handlers(&self) -> HandlerLimits {
        let (file, default) = (&self.handlers, HandlerLimits::within(Duration::ZERO));
        let size =
            |number: u32, unit: usize| usize::try_from(number).unwrap_or(usize::MAX).saturating_mul(unit);
        HandlerLimits {
            memory_bytes: file.memory_mb.map_or(default.memory_bytes, |mb| size(mb.into(), 1 << 20)),
            cpu: file.cpu_ms.map_or(default.cpu, |ms| Duration::from_millis(ms.into())),
            output_bytes: file.output_kb.map_or(default.output_bytes, |kb| size(kb, 1 << 10)),
            pending_host_calls: file.pending_calls.map_or(default.pending_host_calls, usize::from),
            ..default
        }
    }

    fn in_file(&self, mode: Mode) -> ModeLimitsFile {
        match mode {
            Mode::Voice => self.limits.voice,
            Mode::Text => self.limits.text,
        }
    }

    /// What the prompts are put together from that MCP hosts can get. A team without prompt files has none.
    pub fn prompts_for_hosts(&self) -> Prompts {
        let read = |name: &str| std::fs::read_to_string(self.prompts.join(name)).unwrap_or_default();
        let (text, voice) = (self.limits(Mode::Text), self.limits(Mode::Voice));
        Prompts { core: read("core.md"), voice_behavior: read("voice-behavior.md"), text, voice }
    }

    /// The numbers in force for a mode.
    pub fn limits(&self, mode: Mode) -> Limits {
        let (default, file) = (Limits::of(mode), self.in_file(mode));
        Limits {
            retrieval_calls: file.retrieval_calls.unwrap_or(default.retrieval_calls),
            top_k: file.top_k.unwrap_or(default.top_k),
            retrieval_soft_limit_ms: file.retrieval_soft_limit_ms.unwrap_or(default.retrieval_soft_limit_ms),
        }
    }
}

fn policy(file: &File) -> Policy {
    let default = Policy::default();
    let File { confirmation, session, .. } = file;
    let milliseconds = |seconds: Option<u32>, default: i64| seconds.map_or(default, |s| i64::from(s) * 1000);
    Policy {
        org_rate: file.limits.org,
        settings: json!({ "images": { "sensitive_words": file.images.sensitive_words() } }),
        confirmation_ms: milliseconds(confirmation.expires_after_s, default.confirmation_ms),
        approve_when: confirmation.approve_when.clone(),
        may_remember: confirmation.may_remember.unwrap_or(default.may_remember),
        session_ms: milliseconds(session.expires_after_s, default.session_ms),
        farewell_ms: milliseconds(session.farewell_s, default.farewell_ms),
        ..default
    }
}

/// A rule that can never hold is found here, and not when the first person is asked in vain.
fn checked(policy: Policy) -> Result<Policy, Failure> {
    match policy.check() {
        Ok(()) => Ok(policy),
        Err(error) => Err(Failure::new(
            format!("`[confirmation] approve_when` cannot be used: {error}"),
            "a condition looks like `user.id == \"robot\" && tool == \"note_add\" && args.count < 10`",
        )),
    }
}

fn calendar(settings: toolwright_calendar::Settings) -> Result<toolwright_calendar::Settings, Failure> {
    match settings.check() {
        Ok(()) => Ok(settings),
        Err(error) => Err(Failure::new(
            format!("`[calendar]` cannot be used: {error}"),
            "docs/reference/calendar.md shows what its settings mean",
        )),
    }
}

/// A path in the file is relative to the file.
fn relative_to(base: &Path, url: &str) -> String {
    match url.split_once(':') {
        Some((scheme @ ("sqlite" | "dir"), path)) => format!("{scheme}:{}", base.join(path).display()),
        _ => url.to_owned(),
    }
}

/// The nearest file, here or above: a command may be given anywhere in a project.
fn found() -> PathBuf {
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

fn read(named: Option<&Path>) -> Result<(File, PathBuf), Failure> {
    let path = &named.map_or_else(found, Path::to_owned);
    let base = path.parent().map(Path::to_owned).unwrap_or_default();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((File::default(), base));
        }
        Err(error) => {
            let message = format!("cannot read the configuration {}: {error}", path.display());
            return Err(Failure::usage(
                message,
                "name an existing file with `--config FILE`, or leave it out",
            ));
        }
    };
    let file = toml::from_str(&text).map_err(|error| {
        let message =
            format!("the configuration {} is not valid\n{}", path.display(), error.to_string().trim_end());
        Failure::new(message, "docs/reference/configuration.md lists every setting")
    })?;
    Ok((file, base))
}

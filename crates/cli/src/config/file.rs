//! `toolwright.toml` as it is written. An unknown setting is an error.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

use serde::Deserialize;
use toolwright_contract::RateLimit;

use super::embedder::EmbedderFile;
use super::images::ImagesFile;
use crate::args::LogFormat;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct File {
    pub tools: ToolsFile,
    pub prompts: PromptsFile,
    pub limits: LimitsFile,
    pub handlers: HandlersFile,
    pub store: StoreFile,
    pub confirmation: ConfirmationFile,
    pub session: SessionFile,
    pub kb: KbFile,
    pub server: ServerFile,
    pub telemetry: TelemetryFile,
    pub images: ImagesFile,
    pub calendar: toolwright_calendar::Settings,
    pub mcp_servers: Vec<toolwright_imports::Server>,
    /// By tool id.
    pub tool: BTreeMap<String, ToolFile>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolsFile {
    pub dir: Option<PathBuf>,
    pub declared: Vec<PathBuf>,
}

/// Who is told of every call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TelemetryFile {
    pub otlp: Option<String>,
    pub service: Option<String>,
}

/// What one call of a JavaScript handler may use up.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HandlersFile {
    pub memory_mb: Option<u16>,
    pub cpu_ms: Option<u32>,
    pub output_kb: Option<u32>,
    pub pending_calls: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ToolFile {
    pub http: HttpFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HttpFile {
    pub allow: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct PromptsFile {
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LimitsFile {
    pub voice: ModeLimitsFile,
    pub text: ModeLimitsFile,
    /// Calls of one org, over all of its tools and clients.
    pub org: Option<RateLimit>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModeLimitsFile {
    pub retrieval_calls: Option<u32>,
    pub top_k: Option<u32>,
    pub retrieval_soft_limit_ms: Option<u32>,
    pub retries: Option<u32>,
}

/// Where sessions, executions, confirmations and the audit are kept.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StoreFile {
    pub url: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConfirmationFile {
    pub expires_after_s: Option<u32>,
    pub approve_when: Option<String>,
    pub may_remember: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SessionFile {
    pub expires_after_s: Option<u32>,
    pub farewell_s: Option<u32>,
}

/// The knowledge base, and what it is filled from.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct KbFile {
    pub url: Option<String>,
    pub sources: Vec<PathBuf>,
    pub models: Option<PathBuf>,
    pub embedder: Option<EmbedderFile>,
}

/// How `toolwright serve` serves.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerFile {
    pub listen: Option<SocketAddr>,
    pub public_url: Option<String>,
    pub keys: Option<PathBuf>,
    pub log_format: Option<LogFormat>,
    pub access_log: Option<bool>,
    pub workers: Option<NonZeroU16>,
    pub max_body_kb: Option<u32>,
    pub max_header_kb: Option<u32>,
    pub max_connections: Option<u32>,
    pub max_requests: Option<u32>,
    pub header_timeout_s: Option<u32>,
    pub body_timeout_s: Option<u32>,
    pub shutdown_s: Option<u32>,
    pub cors_origins: Option<Vec<String>>,
    pub jwt: JwtFile,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct JwtFile {
    pub jwks: Option<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
    pub roles_claim: Option<String>,
    pub org_claim: Option<String>,
}

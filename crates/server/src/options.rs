//! The options of a server. The caller reads the configuration; nothing here reads the environment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolwright_agent::Agent;
use toolwright_agent::voice::VoiceAgent;

use crate::access_log::AccessLog;
use crate::knowledge_base::KnowledgeBase;
use crate::log_buffer::LogBuffer;
use crate::session_prompt::Prompts;
use crate::setup::Setup;

/// Longer than a model takes between two calls of a turn, shorter than a person takes to read an answer and reply.
pub const DEFAULT_TURN_IDLE: Duration = Duration::from_secs(15);

/// The options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub limits: Limits,
    /// Origins of web pages that may send requests, besides the server's own.
    pub cors_origins: Vec<String>,
    pub access_log: AccessLog,
    /// Where the lines of requests are written, and the caller may write those of calls.
    pub log: Arc<LogBuffer>,
    /// The sources of the prompts that MCP hosts can get.
    pub prompts: Prompts,
    /// The pause between two calls of an MCP host after which a turn begins; see `docs/reference/mcp.md`.
    pub mcp_turn_idle: Duration,
    /// The directory of the images that tools have made; without it none are served.
    pub images: Option<PathBuf>,
    /// The directory that the tools are built from: the console saves tests there. `None` for an artifact.
    pub tools_dir: Option<PathBuf>,
    /// The setup's problems, for the console.
    pub setup: Setup,
    /// Answers chat clients; without it the chat routes are refused.
    pub agent: Option<Agent>,
    /// The knowledge base of the console; without it the page says how to get one.
    pub knowledge_base: Option<Arc<dyn KnowledgeBase>>,
    /// Answers voice clients; without it `/voice` is refused.
    pub voice: Option<VoiceAgent>,
    /// How long running requests may take once shutdown begins.
    pub shutdown: Duration,
}

/// Limits on what one client, or all of them, may use.
#[derive(Debug, Clone)]
pub struct Limits {
    pub body_bytes: usize,
    /// The size of a request's body on the chat routes: clients send the whole conversation, with pictures.
    pub chat_body_bytes: usize,
    /// The size of a request's headers and its path.
    pub header_bytes: usize,
    pub headers: usize,
    /// Maximum number of connections. At the limit the one that has been idle for the longest is closed; if none is
    /// idle, the new connection is served open routes only.
    pub connections: usize,
    /// Maximum number of connections from one address, or from one /64 network of IPv6.
    pub connections_per_peer: usize,
    /// Maximum number of event streams of a session; further ones are refused.
    pub streams_per_session: usize,
    pub streams_per_principal: usize,
    /// Maximum number of running requests; further ones are refused.
    pub requests: usize,
    /// Maximum number of running requests of a principal.
    pub requests_per_principal: usize,
    /// Timeout for an idle connection and for the head of a request.
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    /// A client that reads nothing of a response for so long is disconnected.
    pub write_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7300)),
            limits: Limits::default(),
            cors_origins: Vec::new(),
            access_log: AccessLog::Off,
            log: Arc::default(),
            prompts: Prompts::default(),
            mcp_turn_idle: DEFAULT_TURN_IDLE,
            images: None,
            tools_dir: None,
            setup: Setup::default(),
            agent: None,
            knowledge_base: None,
            voice: None,
            shutdown: Duration::from_secs(35),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            chat_body_bytes: 8 << 20,
            header_bytes: 16 << 10,
            headers: 64,
            connections: 1024,
            connections_per_peer: 384,
            streams_per_session: 16,
            streams_per_principal: 256,
            requests: 512,
            requests_per_principal: 384,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
        }
    }
}

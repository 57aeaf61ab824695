//! What a server is set up with. The caller reads configuration; nothing here touches the environment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::access::AccessLog;
use crate::mcp::Prompts;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub limits: Limits,
    /// Origins of web pages that may ask besides the server's own. Empty: none.
    pub cors_origins: Vec<String>,
    pub access_log: AccessLog,
    /// What the prompts are put together from that MCP hosts can get.
    pub prompts: Prompts,
    /// Where the pictures are that tools have made; without it none are served.
    pub images: Option<PathBuf>,
    /// How long running requests may take once the server is told to stop.
    pub shutdown: Duration,
}

/// What one client, or all of them, may use up.
#[derive(Debug, Clone)]
pub struct Limits {
    pub body_bytes: usize,
    /// Names and values of a request's headers, and its path.
    pub header_bytes: usize,
    pub headers: usize,
    /// At a time; others wait to be accepted.
    pub connections: usize,
    /// At a time; others are refused.
    pub requests: usize,
    /// For the head of a request, and for the pause before the next one.
    pub header_timeout: Duration,
    pub body_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7300)),
            limits: Limits::default(),
            cors_origins: Vec::new(),
            access_log: AccessLog::Off,
            prompts: Prompts::default(),
            images: None,
            shutdown: Duration::from_secs(35),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            header_bytes: 16 << 10,
            headers: 64,
            connections: 1024,
            requests: 512,
            header_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
        }
    }
}

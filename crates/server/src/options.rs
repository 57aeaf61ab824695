//! The options of a server. The caller reads the configuration; nothing here reads the environment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::access_log::AccessLog;
use crate::mcp::Prompts;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub limits: Limits,
    /// Origins of web pages that may send requests, besides the server's own.
    pub cors_origins: Vec<String>,
    pub access_log: AccessLog,
    /// The sources of the prompts that MCP hosts can get.
    pub prompts: Prompts,
    /// The directory of the images that tools have made; without it none are served.
    pub images: Option<PathBuf>,
    /// How long running requests may take once shutdown begins.
    pub shutdown: Duration,
}

/// Limits on what one client, or all of them, may use.
#[derive(Debug, Clone)]
pub struct Limits {
    pub body_bytes: usize,
    /// The size of a request's headers and its path.
    pub header_bytes: usize,
    pub headers: usize,
    /// Open at a time; further ones wait to be accepted.
    pub connections: usize,
    /// Running at a time; further ones are refused.
    pub requests: usize,
    /// For the head of a request, and for the idle time before it.
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

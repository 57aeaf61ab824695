//! Limits on what is read from a server, enforced while it is read. A server that exceeds one loses its connection, and
//! the error names the server, the limit and the setting.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::watch;

/// `[mcp_servers.limits]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The size of one message: a line of a program, the body of a response, or an event of a stream.
    pub message_kb: usize,
    /// The number of tools in a listing.
    pub tools: usize,
    /// The number of pages of a listing.
    pub pages: usize,
    /// The size of all definitions of a listing.
    pub list_kb: usize,
    /// The time for a listing.
    pub list_s: u64,
    /// The amount of a program's standard error that is logged in a minute. More is read and dropped.
    pub stderr_kb: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_kb: 4096, tools: 1000, pages: 100, list_kb: 8192, list_s: 20, stderr_kb: 256 }
    }
}

impl Limits {
    /// The name of a limit that is 0.
    pub(crate) fn zero(&self) -> Option<&'static str> {
        let values = [
            ("message_kb", self.message_kb),
            ("tools", self.tools),
            ("pages", self.pages),
            ("list_kb", self.list_kb),
            ("list_s", usize::try_from(self.list_s).unwrap_or(usize::MAX)),
            ("stderr_kb", self.stderr_kb),
        ];
        values.into_iter().find(|(_, value)| *value == 0).map(|(name, _)| name)
    }

    pub(crate) const fn message_bytes(&self) -> usize {
        self.message_kb.saturating_mul(1024)
    }

    pub(crate) const fn list_bytes(&self) -> usize {
        self.list_kb.saturating_mul(1024)
    }

    pub(crate) const fn list_timeout(&self) -> Duration {
        Duration::from_secs(self.list_s)
    }
}

/// The text of an error about a limit.
pub(crate) fn exceeded(server: &str, what: impl Display, setting: &str) -> String {
    format!(
        "the MCP server `{server}` {what}; if that is right, raise `{setting}` in its `[mcp_servers.limits]`"
    )
}

/// The first limit that a server has exceeded on a connection, shared by all its readers. The connection is closed
/// after that.
#[derive(Debug, Clone)]
pub(crate) struct LimitExceeded {
    server: Arc<str>,
    first: watch::Sender<Option<Arc<str>>>,
}

impl LimitExceeded {
    pub fn new(server: &str) -> Self {
        Self { server: server.into(), first: watch::Sender::new(None) }
    }

    /// Records that a message is larger than its limit, and returns the text of the error.
    pub fn report_message(&self, limits: &Limits) -> String {
        let what = format_args!("sent a message of more than {} KiB", limits.message_kb);
        self.report(exceeded(&self.server, what, "message_kb"))
    }

    /// Records that the server has exceeded a limit that is not a setting, and returns the text of the error.
    pub fn report_fixed(&self, what: impl Display) -> String {
        self.report(format!("the MCP server `{}` {what}", self.server))
    }

    fn report(&self, message: String) -> String {
        self.first.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| message.as_str().into());
            is_first
        });
        message
    }

    pub fn get(&self) -> Option<Arc<str>> {
        self.first.borrow().clone()
    }

    /// Waits for the future, or for the first limit that is exceeded meanwhile.
    pub async fn guard<T>(&self, future: impl Future<Output = T>) -> Result<T, Arc<str>> {
        let mut changes = self.first.subscribe();
        tokio::select! {
            biased;
            Ok(first) = changes.wait_for(Option::is_some) => Err(first.clone().unwrap_or_default()),
            output = future => Ok(output),
        }
    }
}

//! Connects to an MCP server: starts a program or opens streamable HTTP.

#![expect(clippy::disallowed_methods, reason = "starts the MCP servers that the configuration names")]

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use toolwright_capabilities::http::system_tls;

use crate::settings::{Endpoint, EnvironmentLookup, ServerSettings};

/// Includes the time to download a program before it starts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// The length at which lines of a program's standard error are split.
const MAX_LINE_BYTES: u64 = 4096;
/// The variables that every program gets from this process; it gets no others.
const INHERITED_VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"];

/// Handles a server's messages. It announces no client capabilities.
pub(crate) struct MessageHandler {
    /// Counts the `tools/list_changed` notifications.
    pub list_changes: Arc<AtomicU64>,
}

impl ClientHandler for MessageHandler {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("toolwright", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(Default::default(), name)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.list_changes.fetch_add(1, Ordering::AcqRel);
    }
}

pub(crate) type McpClient = RunningService<RoleClient, MessageHandler>;

/// Connects and initializes. The error is for the operator.
pub(crate) async fn connect(
    server: &ServerSettings,
    environment: EnvironmentLookup,
    list_changes: Arc<AtomicU64>,
) -> Result<McpClient, String> {
    let handler = MessageHandler { list_changes };
    let newest_first = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let connecting = async {
        let connected = match server.endpoint().map_err(|error| error.to_string())? {
            Endpoint::Command(program, arguments) => {
                let transport = start_program(server, program, arguments, environment)?;
                handler.serve_with_lifecycle(transport, newest_first).await
            }
            Endpoint::Url(url) => {
                handler.serve_with_lifecycle(http_transport(server, url, environment)?, newest_first).await
            }
        };
        connected.map_err(|error| error.to_string())
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(format!("no response within {} s", CONNECT_TIMEOUT.as_secs())),
    }
}

fn start_program(
    server: &ServerSettings,
    program: &str,
    arguments: &[String],
    environment: EnvironmentLookup,
) -> Result<TokioChildProcess, String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, environment(name)?))));
    for (name, value) in &server.env {
        command.env(name, server.expand(value, environment).map_err(|error| error.to_string())?);
    }
    let (transport, stderr) = TokioChildProcess::builder(command)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("could not start `{program}`: {error}"))?;
    if let Some(stderr) = stderr {
        tokio::spawn(log_stderr(server.name.clone(), stderr));
    }
    Ok(transport)
}

/// Logs the lines of a program's standard error.
async fn log_stderr(server: String, stderr: ChildStderr) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                tracing::info!(target: "toolwright::mcp", server, "{}", String::from_utf8_lossy(&line).trim_end())
            }
        }
    }
}

fn http_transport(
    server: &ServerSettings,
    url: &str,
    environment: EnvironmentLookup,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        let value = server.expand(value, environment).map_err(|error| error.to_string())?;
        // The message leaves out the value, which may be a secret.
        let invalid = || format!("the header `{name}` is invalid");
        let mut value = HeaderValue::from_str(&value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name).map_err(|_| invalid())?, value);
    }
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(system_tls()?)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| format!("could not create the HTTP client: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = headers;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

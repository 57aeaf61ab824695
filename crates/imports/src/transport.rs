//! Connects to an MCP server: starts a program or opens streamable HTTP.

#![expect(clippy::disallowed_methods, reason = "starts the MCP servers that the configuration names")]

use std::collections::HashMap;
use std::ops::Deref;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt, NotificationContext, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use tokio::process::Command;
use toolwright_capabilities::http::system_tls;

use crate::bounded_transport::BoundedTransport;
use crate::connect_problem::{HttpProblem, describe_connect};
use crate::http_client::BoundedHttpClient;
use crate::limits::LimitExceeded;
use crate::program::Program;
use crate::settings::{Endpoint, EnvironmentLookup, ServerSettings};

/// Includes the time to download a program before it starts.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
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

type Service = RunningService<RoleClient, MessageHandler>;

/// An initialized connection.
pub(crate) struct McpClient {
    service: Service,
    /// The limit that the server has exceeded on it.
    pub limit_exceeded: LimitExceeded,
    /// Why its last request over HTTP failed.
    pub problem: HttpProblem,
}

impl Deref for McpClient {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl McpClient {
    pub async fn new(service: Service, limit_exceeded: LimitExceeded, problem: HttpProblem) -> Self {
        // The server chooses how long its responses are valid, and could fill the cache with them.
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Self { service, limit_exceeded, problem }
    }

    pub async fn close(self) {
        // It is closed, whether or not that goes well.
        let _ = self.service.cancel().await;
    }
}

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
    let (limit_exceeded, problem) = (LimitExceeded::new(&server.name), HttpProblem::default());
    let connecting = async {
        let connected = match server.endpoint().map_err(|error| error.to_string())? {
            Endpoint::Command(program, arguments) => {
                let transport = start_program(server, program, arguments, environment, &limit_exceeded)?;
                handler
                    .serve_with_lifecycle(BoundedTransport::new(transport, &limit_exceeded), newest_first)
                    .await
            }
            Endpoint::Url(url) => {
                let transport = http_transport(server, url, environment, &limit_exceeded, &problem)?;
                handler
                    .serve_with_lifecycle(BoundedTransport::new(transport, &limit_exceeded), newest_first)
                    .await
            }
        };
        connected.map_err(|error| problem.get().unwrap_or_else(|| describe_connect(&error)))
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, limit_exceeded.guard(connecting)).await {
        Ok(Ok(Ok(service))) => Ok(McpClient::new(service, limit_exceeded, problem).await),
        Ok(Ok(Err(error))) => Err(error),
        Ok(Err(exceeded)) => Err(exceeded.to_string()),
        Err(_) => Err(format!("no response within {} s", CONNECT_TIMEOUT.as_secs())),
    }
}

fn start_program(
    server: &ServerSettings,
    program: &str,
    arguments: &[String],
    environment: EnvironmentLookup,
    limit_exceeded: &LimitExceeded,
) -> Result<Program, String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    command.envs(INHERITED_VARIABLES.iter().filter_map(|name| Some((*name, environment(name)?))));
    for (name, value) in &server.env {
        command.env(name, server.expand(value, environment).map_err(|error| error.to_string())?);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
        .spawn()
        .and_then(|child| Program::new(child, &server.name, &server.limits, limit_exceeded))
        .map_err(|error| format!("could not start `{program}`: {error}"))
}

fn http_transport(
    server: &ServerSettings,
    url: &str,
    environment: EnvironmentLookup,
    limit_exceeded: &LimitExceeded,
    problem: &HttpProblem,
) -> Result<StreamableHttpClientTransport<BoundedHttpClient>, String> {
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
    let (limits, limit_exceeded) = (server.limits.clone(), limit_exceeded.clone());
    let client = BoundedHttpClient { client, limits, limit_exceeded, problem: problem.clone() };
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = headers;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

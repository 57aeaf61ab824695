//! How a connection to a server is made.

use std::collections::HashMap;
use std::env;
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
use rustls::ClientConfig as Tls;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, Command};

use crate::settings::{Reach, Server};

/// Between asking for a connection and the server's first words: a program may be fetched before it starts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Of one line that a program writes to its standard error.
const LONGEST_LINE: u64 = 4096;
/// What every program needs; the rest of the environment is not for it.
const ENVIRONMENT: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER"];

/// This program, as the server sees it. It offers nothing for the server to ask for.
pub(crate) struct Client {
    /// How often the server has said that its tools are others now.
    pub changes: Arc<AtomicU64>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("toolwright", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(Default::default(), me)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }
}

pub(crate) type Running = RunningService<RoleClient, Client>;

/// Connects and greets. The text of an error is for the operator.
pub(crate) async fn connect(server: &Server, changes: Arc<AtomicU64>) -> Result<Running, String> {
    let client = Client { changes };
    let newest_first = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let connecting = async {
        match server.reach().map_err(|error| error.to_string())? {
            Reach::Command(program, arguments) => {
                let transport = start(server, program, arguments)?;
                let served = client.serve_with_lifecycle(transport, newest_first).await;
                served.map_err(|error| error.to_string())
            }
            Reach::Url(url) => {
                let transport = http(server, url)?;
                let served = client.serve_with_lifecycle(transport, newest_first).await;
                served.map_err(|error| error.to_string())
            }
        }
    };
    match tokio::time::timeout(PATIENCE, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

fn start(server: &Server, program: &str, arguments: &[String]) -> Result<TokioChildProcess, String> {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true);
    let given = ENVIRONMENT.iter().filter_map(|name| Some((*name, env::var_os(name)?)));
    command.envs(given);
    for (name, value) in &server.env {
        command.env(name, server.expanded(value).map_err(|error| error.to_string())?);
    }
    let (transport, errors) = TokioChildProcess::builder(command)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    if let Some(errors) = errors {
        tokio::spawn(log_lines(server.name.clone(), errors));
    }
    Ok(transport)
}

/// What the program says on its standard error goes to the log, a line at a time.
async fn log_lines(server: String, errors: ChildStderr) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut errors).take(LONGEST_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                tracing::info!(target: "toolwright::mcp", server, "{}", String::from_utf8_lossy(&line).trim_end())
            }
        }
    }
}

fn http(server: &Server, url: &str) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut headers = HashMap::new();
    for (name, value) in &server.headers {
        let value = server.expanded(value).map_err(|error| error.to_string())?;
        // Not shown: the value may be a secret.
        let unusable = |_| format!("the header `{name}` cannot be sent");
        let mut value = HeaderValue::from_str(&value).map_err(|_| unusable(()))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name).map_err(|_| unusable(()))?, value);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = Tls::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| format!("there is no TLS: {error}"))?
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| format!("there is no HTTP client: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url);
    config.custom_headers = headers;
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

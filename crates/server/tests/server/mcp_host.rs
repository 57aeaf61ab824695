//! An MCP host: the library's client, with a fixed answer to elicitations.

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ElicitRequestParams,
    ElicitResult, ElicitationAction, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use toolwright_orchestrator::Orchestrator;
use toolwright_registry::prompt::{PromptFiles, SharedPromptFiles};
use toolwright_server::mcp::{HostOptions, Prompts, serve_stdio};

/// The protocol revision of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// 2025-11-25: `initialize` opens a session.
    Session,
    /// 2026-07-28.
    Stateless,
}

pub const REVISIONS: [Revision; 2] = [Revision::Session, Revision::Stateless];

/// The host's answer to elicitations, and what it has received.
#[derive(Debug, Clone)]
pub struct TestHost {
    /// `None`: the host has no elicitation capability.
    pub answer: Option<ElicitationAction>,
    pub elicitations: Arc<Mutex<Vec<String>>>,
    pub progress: Arc<Mutex<Vec<f64>>>,
    pub list_changes: Arc<Mutex<usize>>,
}

impl TestHost {
    pub fn answering(answer: Option<ElicitationAction>) -> Self {
        Self { answer, elicitations: Arc::default(), progress: Arc::default(), list_changes: Arc::default() }
    }
}

impl ClientHandler for TestHost {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.answer {
            Some(_) => ClientCapabilities::builder().enable_elicitation().build(),
            None => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("a-host", "1.0.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = params {
            self.elicitations.lock().unwrap().push(message);
        }
        Ok(ElicitResult::new(self.answer.clone().unwrap()))
    }

    async fn on_progress(&self, progress: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(progress.progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        *self.list_changes.lock().unwrap() += 1;
    }
}

pub type Host = RunningService<RoleClient, TestHost>;

fn lifecycle(revision: Revision) -> ClientLifecycleMode {
    match revision {
        Revision::Session => ClientLifecycleMode::Initialize,
        Revision::Stateless => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    }
}

/// A host that is connected over HTTP.
pub async fn connect_http(
    address: std::net::SocketAddr,
    key: Option<&str>,
    revision: Revision,
    test_host: TestHost,
) -> Host {
    try_connect_http(address, key, revision, test_host).await.unwrap()
}

pub async fn try_connect_http(
    address: std::net::SocketAddr,
    key: Option<&str>,
    revision: Revision,
    test_host: TestHost,
) -> Result<Host, String> {
    // The HTTP client needs a TLS provider even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"));
    config.auth_header = key.map(str::to_owned);
    let transport = StreamableHttpClientTransport::from_config(config);
    test_host.serve_with_lifecycle(transport, lifecycle(revision)).await.map_err(|error| error.to_string())
}

/// A host that is connected over stdio.
pub async fn connect_stdio(orchestrator: Orchestrator, revision: Revision, test_host: TestHost) -> Host {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let files = PromptFiles { core: "# Core\n\nBe kind.".to_owned(), ..PromptFiles::default() };
    let prompts = Prompts { files: SharedPromptFiles::new(files), ..Prompts::default() };
    tokio::spawn(async move {
        let options = HostOptions { prompts, ..HostOptions::default() };
        serve_stdio(orchestrator, options, tokio::io::split(theirs)).await.unwrap();
    });
    test_host.serve_with_lifecycle(tokio::io::split(ours), lifecycle(revision)).await.unwrap()
}

pub async fn call(host: &Host, name: &str, args: Value) -> Result<CallToolResult, ServiceError> {
    host.call_tool(params(name, args)).await
}

pub fn params(name: &str, args: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name.to_owned()).with_arguments(args.as_object().unwrap().clone())
}

/// The text that a model reads.
pub fn text(result: &CallToolResult) -> Value {
    let text = &result.content[0].as_text().unwrap().text;
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
}

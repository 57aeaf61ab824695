//! An MCP host: the library's own client, and a person who answers its questions.

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
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;
use toolwright_server::mcp::{Prompts, serve_pipe};

/// How a host begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: a handshake, then a session.
    Session,
    /// 2026-07-28: every request stands alone.
    Stateless,
}

pub const ERAS: [Era; 2] = [Era::Session, Era::Stateless];

/// Who sits before the host, and what they have seen.
#[derive(Debug, Clone)]
pub struct Person {
    /// Nothing: the host cannot ask.
    pub says: Option<ElicitationAction>,
    pub asked: Arc<Mutex<Vec<String>>>,
    pub progress: Arc<Mutex<Vec<f64>>>,
    pub changes: Arc<Mutex<usize>>,
}

impl Person {
    pub fn who_says(says: Option<ElicitationAction>) -> Self {
        Self { says, asked: Arc::default(), progress: Arc::default(), changes: Arc::default() }
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.says {
            Some(_) => ClientCapabilities::builder().enable_elicitation().build(),
            None => ClientCapabilities::default(),
        };
        ClientConfig::new(capabilities, Implementation::new("a-host", "1.0.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = asked {
            self.asked.lock().unwrap().push(message);
        }
        Ok(ElicitResult::new(self.says.clone().unwrap()))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(told.progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        *self.changes.lock().unwrap() += 1;
    }
}

pub type Host = RunningService<RoleClient, Person>;

fn lifecycle(era: Era) -> ClientLifecycleMode {
    match era {
        Era::Session => ClientLifecycleMode::Initialize,
        Era::Stateless => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
    }
}

/// A host that speaks HTTP.
pub async fn over_http(address: std::net::SocketAddr, key: Option<&str>, era: Era, person: Person) -> Host {
    try_http(address, key, era, person).await.unwrap()
}

pub async fn try_http(
    address: std::net::SocketAddr,
    key: Option<&str>,
    era: Era,
    person: Person,
) -> Result<Host, String> {
    // The HTTP client is built without a provider of TLS, which it asks for even when nothing is encrypted.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"));
    config.auth_header = key.map(str::to_owned);
    let transport = StreamableHttpClientTransport::from_config(config);
    person.serve_with_lifecycle(transport, lifecycle(era)).await.map_err(|error| error.to_string())
}

/// A host at the other end of a pipe.
pub async fn over_pipe(orchestrator: Orchestrator, era: Era, person: Person) -> Host {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let prompts = Prompts { core: "# Core\n\nBe kind.".to_owned(), ..Prompts::default() };
    tokio::spawn(async move {
        serve_pipe(orchestrator, prompts, Mode::Text, tokio::io::split(theirs)).await.unwrap();
    });
    person.serve_with_lifecycle(tokio::io::split(ours), lifecycle(era)).await.unwrap()
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

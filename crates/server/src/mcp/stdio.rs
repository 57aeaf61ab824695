//! MCP over stdio: one process, one MCP host, one session.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::Orchestrator;

use super::handler::{Handler, StdioSession};
use super::state::McpState;
use super::stdio_transport::StdioTransport;
use crate::auth::local_principal;
use crate::maintenance::maintain;
use crate::options::DEFAULT_TURN_IDLE;
use crate::request::new_session;
use crate::session_prompt::Prompts;

/// The orchestrator, session and limits that an MCP host is served with.
#[derive(Debug, Clone)]
pub struct HostOptions {
    pub prompts: Prompts,
    /// The mode of its session.
    pub mode: Mode,
    /// The pause between two calls after which a turn begins; 0: every call begins one.
    pub turn_idle: Duration,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { prompts: Prompts::default(), mode: Mode::Text, turn_idle: DEFAULT_TURN_IDLE }
    }
}

/// Serves the local user over a pair of pipes until the MCP host closes them.
///
/// # Errors
/// When the session cannot be stored, or the MCP host does not speak MCP.
pub fn serve_stdio(
    orchestrator: Orchestrator,
    options: HostOptions,
    (input, output): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
) -> BoxFuture<'static, Result<(), Error>> {
    serve_pipes(orchestrator, options, (Box::new(input), Box::new(output)))
}

type Error = Box<dyn std::error::Error + Send + Sync>;
type Pipes = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Not generic, so that the library's service is compiled here once.
fn serve_pipes(
    orchestrator: Orchestrator,
    options: HostOptions,
    pipes: Pipes,
) -> BoxFuture<'static, Result<(), Error>> {
    Box::pin(serve(orchestrator, options, pipes))
}

async fn serve(orchestrator: Orchestrator, options: HostOptions, pipes: Pipes) -> Result<(), Error> {
    let principal: Arc<Principal> = Arc::new(local_principal());
    let session = orchestrator.create_session(new_session(&principal, options.mode)).await?;
    let state = Arc::new(McpState::new(orchestrator.clone(), options));
    let stdio = StdioSession { principal, session_id: session.id.clone() };
    let host = async {
        let running = Handler::new(state, Some(stdio)).serve(StdioTransport::new(pipes)).await?;
        running.waiting().await?;
        Ok::<_, Error>(())
    };
    tokio::select! {
        ended = host => ended?,
        () = maintain(&orchestrator) => {}
    }
    orchestrator.end_session(&session.id).await?;
    Ok(())
}

//! MCP over stdio: one process, one host, one session.

use std::sync::Arc;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::Orchestrator;

use super::handler::{Handler, StdioSession};
use super::prompts::Prompts;
use super::state::McpState;
use super::stdio_transport::StdioTransport;
use crate::auth::local_principal;
use crate::request::new_session;
use crate::server::maintain;

/// Serves the local user over a pair of pipes until the host closes them.
///
/// # Errors
/// When the session cannot be stored, or the host does not speak MCP.
pub async fn serve_stdio<R, W>(
    orchestrator: Orchestrator,
    prompts: Prompts,
    mode: Mode,
    pipes: (R, W),
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let principal: Arc<Principal> = Arc::new(local_principal());
    let session = orchestrator.create_session(new_session(&principal, mode)).await?;
    let state = Arc::new(McpState::new(orchestrator.clone(), prompts, mode));
    let stdio = StdioSession { principal, session_id: session.id.clone() };
    let host = async {
        let running = Handler::new(state, Some(stdio)).serve(StdioTransport::new(pipes)).await?;
        running.waiting().await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    tokio::select! {
        ended = host => ended?,
        () = maintain(&orchestrator) => {}
    }
    orchestrator.end_session(&session.id).await?;
    Ok(())
}

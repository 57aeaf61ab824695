//! MCP over a pipe: one process, one host, one session.

use std::sync::Arc;

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::Orchestrator;

use super::caller::Caller;
use super::handler::Handler;
use super::lines::Lines;
use super::prompts::Prompts;
use super::shared::Shared;
use crate::route::ADMIN;

/// Serves whoever sits at the machine over a pair of pipes, until the host closes them.
///
/// # Errors
/// When the session cannot be kept, or the host does not speak MCP.
pub async fn serve_pipe<R, W>(
    orchestrator: Orchestrator,
    prompts: Prompts,
    mode: Mode,
    pipes: (R, W),
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let principal = Principal { id: "local".to_owned(), org: None, roles: vec![ADMIN.to_owned()] };
    let mut caller = Caller { principal: Arc::new(principal), session: None };
    let session = orchestrator.create_session(caller.begin(None, mode)).await?;
    caller.session = Some(Arc::from(session.id.as_str()));
    let shared = Arc::new(Shared::new(orchestrator.clone(), prompts, mode));
    let running = Handler::new(shared, Some(caller)).serve(Lines::new(pipes)).await?;
    running.waiting().await?;
    orchestrator.end_session(&session.id).await?;
    Ok(())
}

//! `toolwright mcp`: the tools for one MCP host, over stdin and stdout. Everything else goes to stderr.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use toolwright_orchestrator::store::Backend;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_server::mcp::{rmcp, serve_pipe};

use super::serve::{follow, told_to_stop, warm_up};
use crate::args::{Common, Mcp};
use crate::config::Config;
use crate::output::Failure;
use crate::{store, toolset};

const HOUSEKEEPING: Duration = Duration::from_secs(5);
/// For calls that write, when the host has gone away.
const PATIENCE: Duration = Duration::from_secs(35);

pub fn run(common: &Common, args: &Mcp) -> Result<ExitCode> {
    let config = Arc::new(Config::load(common, None)?);
    let runtime = toolset::runtime(&args.source, &config)?;
    let tokio = toolset::tokio()?;
    let finished = tokio.block_on(serve(&config, runtime, args))?;
    // A thread may still wait for stdin.
    tokio.shutdown_background();
    Ok(if finished { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn serve(config: &Arc<Config>, runtime: Runtime, args: &Mcp) -> Result<bool> {
    let store = store::open(&config.store).await?;
    warm_up(runtime.clone());
    let orchestrator = Orchestrator::builder(runtime).store(store).policy(config.policy()).build();
    let help = "`[confirmation] approve_when` is a CEL condition";
    let orchestrator = orchestrator.map_err(|error| Failure::new(error, help))?;
    if args.watch {
        follow(Arc::clone(config), orchestrator.clone());
    }
    let prompts = config.prompts_for_hosts();
    let housekeeping = tokio::spawn(keep_house(orchestrator.clone()));
    let served = serve_pipe(orchestrator.clone(), prompts, args.mode, rmcp::transport::stdio());
    tokio::select! {
        ended = served => ended.map_err(|error| anyhow!("the host and this server do not understand each other: {error}"))?,
        () = told_to_stop() => {}
    }
    housekeeping.abort();
    let is_at_rest = orchestrator.wait_until_idle(PATIENCE).await;
    orchestrator.store().flush().await?;
    Ok(is_at_rest)
}

/// What nobody asks for: approved calls that were left over, sessions and questions whose time has come.
async fn keep_house(orchestrator: Orchestrator) {
    let mut due = tokio::time::interval(HOUSEKEEPING);
    loop {
        due.tick().await;
        let kept = async { orchestrator.resume().await.and(orchestrator.sweep().await) };
        if let Err(error) = kept.await {
            tracing::error!("{error}");
        }
    }
}

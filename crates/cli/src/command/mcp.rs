//! `toolwright mcp`: serves the tools to one MCP host, over stdin and stdout. All messages go to stderr.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand};
use toolwright_contract::Mode;
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::{Backend, Store};
use toolwright_server::Setup;
use toolwright_server::mcp::{rmcp, serve_stdio};

use super::local_mcp;
use super::pin::{self, Pin};
use super::serve::{prepare_in_background, reload_on_change, shutdown_signal};
use crate::args::{Source, parse_mode};
use crate::config::Config;
use crate::output;
use crate::store::{self, StoreAccess};
use crate::toolset;

/// How long writing calls may take after the MCP host has disconnected.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(35);

/// Serve the tools to an MCP host over stdin and stdout
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  toolwright mcp                               build tools/, speak MCP on stdin and stdout
  toolwright mcp --artifact dist/tool_registry.json
  toolwright mcp --store memory:               store nothing

While `toolwright serve` uses the same store, the host is served by it, with the server's tools."
)]
pub struct Mcp {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    source: Source,
    /// The session's mode
    #[arg(long, value_parser = parse_mode, default_value = "text", value_name = "text|voice")]
    mode: Mode,
    /// Build again whenever a tool changes, and notify the host
    #[arg(long, conflicts_with = "artifact")]
    watch: bool,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    Pin(Pin),
}

pub fn run(config: Config, args: &Mcp) -> Result<ExitCode> {
    if let Some(McpCommand::Pin(args)) = &args.command {
        return pin::run(&config, args).map(|()| ExitCode::SUCCESS);
    }
    let config = Arc::new(config);
    let tokio = toolset::async_runtime()?;
    let finished = tokio.block_on(async {
        match store::open_or_find_server(&config).await? {
            StoreAccess::Own(store) => serve(&config, *store, args).await,
            StoreAccess::Server(server) => {
                toolset::refuse_artifact(&args.source, &server)?;
                local_mcp::pass_on(&server.file, args.mode).await
            }
        }
    })?;
    // A thread may still be reading stdin.
    tokio.shutdown_background();
    Ok(output::status(finished))
}

async fn serve(config: &Arc<Config>, store: Store, args: &Mcp) -> Result<bool> {
    let runtime = toolset::load_runtime(&args.source, config)?;
    prepare_in_background(runtime.clone(), None);
    let orchestrator = Orchestrator::builder(runtime).store(store).policy(config.policy());
    let orchestrator = orchestrator.capacity(config.capacity()).build()?;
    if args.watch {
        reload_on_change(Arc::clone(config), orchestrator.clone(), Setup::default()).await;
    }
    let options = config.host_options(args.mode);
    let served = serve_stdio(orchestrator.clone(), options, rmcp::transport::stdio());
    tokio::select! {
        ended = served => ended.map_err(|error| anyhow!("the MCP connection with the host failed: {error}"))?,
        () = shutdown_signal() => {}
    }
    let finished = orchestrator.wait_until_idle(SHUTDOWN_TIMEOUT).await;
    orchestrator.store().flush().await?;
    orchestrator.store().close().await;
    Ok(finished)
}

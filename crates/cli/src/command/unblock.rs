//! `toolwright unblock`: lifts the block of a client.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use reqwest::Method;
use serde_json::json;
use toolwright_contract::Principal;
use toolwright_orchestrator::store::{Backend, Store};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::server_client::encode;
use crate::store::{self, StoreAccess};
use crate::toolset;

/// Lift the block of a client that a tool has blocked
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright unblock website --client visitor-42")]
pub struct Unblock {
    /// The id of the client's principal
    user: String,
    /// The client's id, if the principal speaks for clients or is an admin
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// The principal's org
    #[arg(long)]
    org: Option<String>,
}

pub fn run(config: &Config, args: &Unblock) -> Result<()> {
    let client = args.client.as_deref().unwrap_or(&args.user);
    let was_blocked = toolset::async_runtime()?.block_on(async {
        match store::open_or_find_server(config).await? {
            StoreAccess::Own(store) => lift(*store, args, client).await,
            StoreAccess::Server(server) => {
                let mut path = format!("/v1/blocks?user={}&clientId={}", encode(&args.user), encode(client));
                args.org.iter().for_each(|org| path.push_str(&format!("&org={}", encode(org))));
                let lifted = server.get_answer(Method::DELETE, &path, None, None).await?;
                Ok(lifted["wasBlocked"] == true)
            }
        }
    })?;
    if !was_blocked {
        let message = format!("the client `{client}` of `{}` is not blocked", args.user);
        let help =
            "check the principal, `--client` and `--org`: `toolwright audit tail --format json` shows them";
        return Err(Failure::new(message, help).into());
    }
    match config.format {
        Format::Json => output::print_line(json!({ "unblocked": client })),
        Format::Human => output::message(format_args!("the client `{client}` is no longer blocked")),
    }
    Ok(())
}

async fn lift(store: Store, args: &Unblock, client: &str) -> Result<bool> {
    // No tool runs, so the tools need not build.
    let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
    let orchestrator = Orchestrator::builder(runtime).store(store).build()?;
    let principal = Principal { id: args.user.clone(), org: args.org.clone(), roles: Vec::new() };
    let was_blocked = orchestrator.unblock(&principal, client).await?;
    orchestrator.store().flush().await?;
    Ok(was_blocked)
}

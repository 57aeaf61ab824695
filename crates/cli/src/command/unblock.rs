//! `toolwright unblock`: a client that a tool has shut out is let in again.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use serde_json::json;
use toolwright_orchestrator::store::{Backend, Principal};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::args::{Common, Format, Unblock};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::{store, toolset};

pub fn run(common: &Common, args: &Unblock) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    // Nothing runs, so it does not matter whether the tools build.
    let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
    let principal = Principal { id: args.user.clone(), org: args.org.clone(), roles: Vec::new() };
    let client = args.client.as_deref().unwrap_or(&args.user);
    let was_blocked = toolset::tokio()?.block_on(async {
        let store = store::open(&config.store).await?;
        let orchestrator = Orchestrator::builder(runtime).store(store).build()?;
        let was_blocked = orchestrator.unblock(&principal, client).await?;
        orchestrator.store().flush().await?;
        anyhow::Ok(was_blocked)
    })?;
    if !was_blocked {
        let message = format!("the client `{client}` of `{}` is not blocked", args.user);
        let help = "name the principal, and with `--client` and `--org` its client and org: `toolwright audit tail --format json` shows clients";
        return Err(Failure::new(message, help).into());
    }
    match common.format {
        Format::Json => output::data_line(json!({ "unblocked": client })),
        Format::Human => output::message(format_args!("the client `{client}` is let in again")),
    }
    Ok(ExitCode::SUCCESS)
}

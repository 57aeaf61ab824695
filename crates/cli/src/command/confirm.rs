//! `toolwright confirmations`, `approve` and `deny`: lists confirmation requests, and answers them.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolwright_orchestrator::confirm::{Approver, Error, Proof};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, Store};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use super::call::{CLIENT_ID, TerminalClient, print_envelope, read_arguments};
use crate::args::{Format, Source};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::read_only_store::ReadOnlyStore;
use crate::{store, toolset};

/// List the calls that wait for approval
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright confirmations
  toolwright confirmations --session s1 --format json")]
pub struct Confirmations {
    /// Only those of one session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// Approve a waiting call: it runs once, and its envelope is printed; exits with 1 if it fails
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright approve conf_3f9c…
  toolwright approve conf_3f9c… --args '{\"amount\": 20}'     with other arguments, which are validated again")]
pub struct Approve {
    /// The id of the confirmation request, or its token
    #[arg(value_name = "TOKEN|ID")]
    token: String,
    /// Run the call with these arguments instead: JSON, or @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    #[command(flatten)]
    source: Source,
}

/// Reject a waiting call
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright deny conf_3f9c… --reason 'too expensive'")]
pub struct Deny {
    /// The id of the confirmation request, or its token
    #[arg(value_name = "TOKEN|ID")]
    token: String,
    /// The reason, for the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn list(config: &Config, args: &Confirmations) -> Result<()> {
    let now = chrono::Utc::now().timestamp_millis();
    let mut pending = toolset::async_runtime()?
        .block_on(async { ReadOnlyStore::open(&config.store).await?.pending_confirmations().await })?;
    pending.retain(|request| {
        request.expires_at > now && args.session.as_ref().is_none_or(|session| request.session == *session)
    });
    match config.format {
        Format::Json => output::print_line(Value::Array(pending.iter().map(to_json).collect())),
        Format::Human if pending.is_empty() => output::message("no call waits for approval"),
        Format::Human => pending.iter().for_each(|request| output::print_line(to_line(request, now))),
    }
    Ok(())
}

pub fn approve(config: &Config, args: &Approve) -> Result<ExitCode> {
    let edited = args.args.as_deref().map(|text| read_arguments(Some(text))).transpose()?;
    let (runtime, imports) = toolset::load_runtime_for_call(&args.source, config)?;
    let envelope = toolset::async_runtime()?.block_on(async {
        let tools = runtime.clone();
        let orchestrator = orchestrator(runtime, config, &args.token, "approve").await?;
        let request = find(orchestrator.store(), &args.token).await?;
        let session = orchestrator.session(&request.session).await?;
        if let Some(session) = session.filter(|session| orchestrator.runtime_for(session).is_none()) {
            let message = format!(
                "the tools have changed since the call was made: its session uses version {}",
                session.registry_version()
            );
            let help = format!("go back to that version, or reject the call: toolwright deny {}", request.id);
            return Err(Failure::new(message, help).into());
        }
        orchestrator.attach(&request.session, Arc::new(TerminalClient));
        imports.wait_until_ready(tools.toolset().get(&request.tool)).await;
        let approved = orchestrator.approve(&approver(&args.token, &request), edited).await;
        let envelope = approved.map_err(failure)?;
        print_envelope(config, &envelope)?;
        orchestrator.store().flush().await?;
        anyhow::Ok(envelope)
    })?;
    Ok(output::status(envelope.is_ok()))
}

pub fn deny(config: &Config, args: &Deny) -> Result<()> {
    // No tool runs, so the tools need not build.
    let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
    toolset::async_runtime()?.block_on(async {
        let orchestrator = orchestrator(runtime, config, &args.token, "reject").await?;
        let request = find(orchestrator.store(), &args.token).await?;
        let rejected = orchestrator.reject(&approver(&args.token, &request), args.reason.clone()).await;
        let envelope = rejected.map_err(failure)?;
        print_envelope(config, &envelope)?;
        orchestrator.store().flush().await?;
        Ok(())
    })
}

/// `action` is the last part of the REST path of the same answer.
async fn orchestrator(runtime: Runtime, config: &Config, token: &str, action: &str) -> Result<Orchestrator> {
    let path = format!("/v1/confirmations/{}/{action} -X POST", id_of(token));
    let store = store::open_for(config, &path).await?;
    Ok(Orchestrator::builder(runtime).store(store).policy(config.policy()).build()?)
}

async fn find(store: &Store, token: &str) -> Result<Arc<ConfirmationRecord>> {
    let id = id_of(token);
    store.confirmation(id).await?.ok_or_else(|| {
        let help = "`toolwright confirmations` lists those that wait";
        Failure::new(format!("there is no confirmation request `{id}`"), help).into()
    })
}

/// A token is the id and a secret.
fn id_of(token: &str) -> &str {
    token.split('.').next().unwrap_or_default()
}

/// The user of the terminal may answer for all users of the store. A token must be valid nevertheless.
pub(super) fn approver<'a>(token: &'a str, request: &'a ConfirmationRecord) -> Approver<'a> {
    let (session, client_id) = (&request.session, &request.client_id);
    Approver { token, proof: Proof::Transport, session, client_id, by: CLIENT_ID }
}

fn failure(error: Error) -> Failure {
    let help = match &error {
        Error::Refused => "`toolwright confirmations` lists those that wait",
        Error::Edited(_) => "fix `--args`, or leave it out to approve the original arguments",
        Error::Store(_) => "try again in a moment",
    };
    Failure::new(error, help)
}

fn to_json(request: &ConfirmationRecord) -> Value {
    json!({ "id": request.id, "session": request.session, "clientId": request.client_id, "tool": request.tool,
        "toolVersion": request.tool_version, "executionId": request.execution, "preview": request.preview,
        "args": request.redacted_args.as_ref().unwrap_or(&request.args), "createdAt": request.created_at,
        "expiresAt": request.expires_at })
}

fn to_line(request: &ConfirmationRecord, now: i64) -> String {
    let seconds = (request.expires_at - now) / 1000;
    let left = if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) };
    let (id, tool, session) =
        (&request.id, output::sanitize(&request.tool), output::sanitize(&request.session));
    format!("{id}  \x1b[1m{tool}\x1b[0m  {session}  {left} left  {}", output::sanitize(&request.preview))
}

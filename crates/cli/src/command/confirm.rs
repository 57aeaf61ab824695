//! `toolwright confirmations`, `approve` and `reject`: lists confirmation requests, and answers them.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use reqwest::Method;
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, PendingQuery, PendingScope, Store};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use super::call::{CLIENT_ID, TerminalClient, print_envelope, read_arguments};
use crate::args::{Format, Source};
use crate::call_target::{Answer, with_result};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::read_only_store::ReadOnlyStore;
use crate::server_client::{ServerClient, encode};
use crate::store::{self, StoreAccess};
use crate::toolset;

/// List the calls that wait for approval
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright confirmations
  toolwright confirmations --session s1 --format json")]
pub struct Confirmations {
    /// Only those of one session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The most to list, oldest first
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    /// Begin after this place, which the list before has named
    #[arg(long, value_name = "PLACE", value_parser = parse_place)]
    after: Option<(i64, String)>,
}

/// The place of a confirmation request in the list: its time and its id.
fn parse_place(text: &str) -> Result<(i64, String), String> {
    let place = text.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| "write the place as the list gives it, `TIME.ID`".to_owned())
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
#[command(
    visible_alias = "deny",
    after_help = "Example:\n  toolwright reject conf_3f9c… --reason 'too expensive'"
)]
pub struct Reject {
    /// The id of the confirmation request, or its token
    #[arg(value_name = "TOKEN|ID")]
    token: String,
    /// The reason, for the model
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn list(config: &Config, args: &Confirmations) -> Result<()> {
    let now = chrono::Utc::now().timestamp_millis();
    let query = PendingQuery {
        scope: args.session.as_deref().map_or(PendingScope::All, PendingScope::Session),
        after: args.after.as_ref().map(|(at, id)| (*at, id.as_str())),
        limit: usize::try_from(args.limit).unwrap_or(usize::MAX),
    };
    let mut pending = toolset::async_runtime()?
        .block_on(async { ReadOnlyStore::open(config).await?.pending_confirmations(query).await })?;
    let more = pending.last().filter(|_| pending.len() >= query.limit);
    let more = more.map(|last| format!("{}.{}", last.created_at, last.id));
    pending.retain(|request| request.expires_at > now);
    match config.format {
        Format::Json => output::print_line(Value::Array(pending.iter().map(to_json).collect())),
        Format::Human if pending.is_empty() => output::message("no call waits for approval"),
        Format::Human => {
            let rows = pending.iter().map(|request| to_row(request, now)).collect();
            output::print_table(["ID", "TOOL", "SESSION", "EXPIRES IN", "PREVIEW"], rows);
        }
    }
    if let Some(place) = more {
        output::help(format_args!("there may be more: add `--after {place}`"));
    }
    Ok(())
}

pub fn approve(config: &Config, args: &Approve) -> Result<ExitCode> {
    let edited = args.args.as_deref().map(|text| read_arguments(Some(text))).transpose()?;
    let answer = toolset::async_runtime()?.block_on(async {
        let store = match store::open_or_find_server(config).await? {
            StoreAccess::Own(store) => *store,
            StoreAccess::Server(server) => {
                toolset::refuse_artifact(&args.source, &server)?;
                let body = edited.map_or(json!({}), |edited| json!({ "args": edited }));
                return answer_through(config, &server, &args.token, "approve", body).await;
            }
        };
        let (runtime, imports) = toolset::load_runtime_for_call(&args.source, config, None)?;
        let tools = runtime.clone();
        let orchestrator = orchestrator(runtime, config, store)?;
        let request = find(orchestrator.store(), &args.token).await?;
        let session = orchestrator.session(&request.session).await?;
        if let Some(session) = session
            && orchestrator.runtime_for(&session).await?.is_none()
        {
            let message =
                format!("the store does not have the toolset of the call's session, {}", session.toolset);
            let help =
                format!("go back to that version, or reject the call: toolwright reject {}", request.id);
            return Err(Failure::new(message, help).into());
        }
        orchestrator.attach(&request.session, Arc::new(TerminalClient));
        imports.wait_until_ready(tools.toolset().get(&request.tool)).await;
        let approved = orchestrator.approve(&approver(&args.token, &request), edited).await;
        let envelope = with_result(&orchestrator, approved.map_err(failure)?).await?;
        let answer = Answer::new(&envelope)?;
        print_envelope(config, &answer)?;
        orchestrator.store().flush().await?;
        anyhow::Ok(answer)
    })?;
    Ok(output::status(answer.is_ok))
}

pub fn reject(config: &Config, args: &Reject) -> Result<()> {
    toolset::async_runtime()?.block_on(async {
        let store = match store::open_or_find_server(config).await? {
            StoreAccess::Own(store) => *store,
            StoreAccess::Server(server) => {
                let body = json!({ "reason": args.reason });
                return answer_through(config, &server, &args.token, "reject", body).await.map(drop);
            }
        };
        // No tool runs, so the tools need not build.
        let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
        let orchestrator = orchestrator(runtime, config, store)?;
        let request = find(orchestrator.store(), &args.token).await?;
        let rejected = orchestrator.reject(&approver(&args.token, &request), args.reason.clone()).await;
        print_envelope(config, &Answer::new(&*rejected.map_err(failure)?)?)?;
        orchestrator.store().flush().await?;
        Ok(())
    })
}

fn orchestrator(runtime: Runtime, config: &Config, store: Store) -> Result<Orchestrator> {
    Ok(Orchestrator::builder(runtime).store(store).policy(config.policy()).build()?)
}

/// Sends the answer to the server; `action` is the last part of its REST path.
async fn answer_through(
    config: &Config,
    server: &ServerClient,
    token: &str,
    action: &str,
    body: Value,
) -> Result<Answer> {
    let path = format!("/v1/confirmations/{}/{action}", encode(token));
    match server.send(Method::POST, &path, None, Some(body)).await? {
        Ok(envelope) => {
            let answer = Answer::from_json(envelope);
            print_envelope(config, &answer)?;
            Ok(answer)
        }
        Err(refusal) if refusal.status == 404 => Err(unknown_request(token).into()),
        Err(refusal) => {
            Err(Failure::new(refusal.detail, "`toolwright confirmations` lists those that wait").into())
        }
    }
}

async fn find(store: &Store, token: &str) -> Result<Arc<ConfirmationRecord>> {
    let id = id_of(token);
    store.confirmation(id).await?.ok_or_else(|| unknown_request(id).into())
}

fn unknown_request(token: &str) -> Failure {
    let message = format!("there is no confirmation request `{}`", id_of(token));
    Failure::new(message, "`toolwright confirmations` lists those that wait")
}

/// A token is the id and a secret.
fn id_of(token: &str) -> &str {
    token.split('.').next().unwrap_or_default()
}

/// The user of the terminal may answer for all users of the store. A token must be valid nevertheless.
fn approver<'a>(token: &'a str, request: &'a ConfirmationRecord) -> Approver<'a> {
    let (session, client_id) = (&request.session, &request.client_id);
    Approver { token, proof: AnswerProof::Transport, session, client_id, by: CLIENT_ID, principal: None }
}

fn failure(error: Error) -> Failure {
    let help = match &error {
        Error::Refused | Error::Answered | Error::WrongToken | Error::TokenRequired => {
            "`toolwright confirmations` lists those that wait"
        }
        Error::Expired => "make the call again",
        Error::Forbidden(_) => "a person with the role that the tool requires can approve it",
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

fn to_row(request: &ConfirmationRecord, now: i64) -> [String; 5] {
    let seconds = (request.expires_at - now) / 1000;
    let left = if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) };
    let (tool, session) = (escape(&request.tool), escape(&request.session));
    [request.id.clone(), tool.into_owned(), session.into_owned(), left, escape(&request.preview).into_owned()]
}

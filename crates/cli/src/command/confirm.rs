//! `toolwright confirmations`, `approve` and `deny`: the questions that wait for a person, and the answers.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Result;
use serde_json::{Value, json};
use toolwright_orchestrator::confirm::{Approver, Error, Proof};
use toolwright_orchestrator::store::{Backend, Confirmation, Store};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use super::call::{CLIENT, Terminal, arguments, show};
use crate::args::{Approve, Common, Confirmations, Deny, Format};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::record::Record;
use crate::{store, toolset};

pub fn list(common: &Common, args: &Confirmations) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let now = now();
    let mut waiting =
        toolset::tokio()?.block_on(async { Record::open(&config.store).await?.pending().await })?;
    waiting.retain(|asked| asked.expires_at > now);
    waiting.retain(|asked| args.session.as_ref().is_none_or(|session| asked.session == *session));
    match common.format {
        Format::Json => output::data_line(Value::Array(waiting.iter().map(told).collect())),
        Format::Human if waiting.is_empty() => output::message("nothing waits for a person"),
        Format::Human => waiting.iter().for_each(|asked| output::data_line(line(asked, now))),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn approve(common: &Common, args: &Approve) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let edited = args.args.as_deref().map(|text| arguments(Some(text))).transpose()?;
    let (runtime, imports) = toolset::runtime_told(common, &args.source, &config)?;
    let envelope = toolset::tokio()?.block_on(async {
        let known = runtime.clone();
        let orchestrator = orchestrator(runtime, &config, &args.token, "approve").await?;
        let asked = find(orchestrator.store(), &args.token).await?;
        let session = orchestrator.session(&asked.session).await?;
        if let Some(session) = session.filter(|session| orchestrator.runtime_for(session).is_none()) {
            let message = format!(
                "the tools are not those that were asked about: the session keeps version {}",
                session.registry_version()
            );
            let help = format!("go back to that version, or decline: toolwright deny {}", asked.id);
            return Err(Failure::new(message, help).into());
        }
        orchestrator.attach(&asked.session, Arc::new(Terminal));
        imports.ready(known.toolset().get(&asked.tool)).await;
        let answered = orchestrator.approve(&answerer(&args.token, &asked), edited).await;
        let envelope = answered.map_err(refused)?;
        show(common, &envelope)?;
        orchestrator.store().flush().await?;
        anyhow::Ok(envelope)
    })?;
    Ok(if envelope.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub fn deny(common: &Common, args: &Deny) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    // Nothing runs, so it does not matter whether the tools build.
    let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
    toolset::tokio()?.block_on(async {
        let orchestrator = orchestrator(runtime, &config, &args.token, "reject").await?;
        let asked = find(orchestrator.store(), &args.token).await?;
        let answered = orchestrator.reject(&answerer(&args.token, &asked), args.reason.clone()).await;
        let envelope = answered.map_err(refused)?;
        show(common, &envelope)?;
        orchestrator.store().flush().await?;
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// `answer` is what the token is for: the last part of the path over REST.
async fn orchestrator(runtime: Runtime, config: &Config, token: &str, answer: &str) -> Result<Orchestrator> {
    let id = token.split('.').next().unwrap_or_default();
    let store = store::open_for(config, &format!("/v1/confirmations/{id}/{answer} -X POST")).await?;
    Ok(Orchestrator::builder(runtime).store(store).policy(config.policy()).build()?)
}

async fn find(store: &Store, token: &str) -> Result<Arc<Confirmation>> {
    let id = token.split('.').next().unwrap_or_default();
    match store.confirmation(id).await? {
        Some(asked) => Ok(asked),
        None => Err(Failure::new(
            format!("there is no question `{id}`"),
            "`toolwright confirmations` lists those that wait",
        )
        .into()),
    }
}

/// Whoever can open the store may answer for its users; a token that is given must be right all the same.
fn answerer<'a>(token: &'a str, asked: &'a Confirmation) -> Approver<'a> {
    let (session, client_id) = (&asked.session, &asked.client_id);
    Approver { token, proof: Proof::Transport, session, client_id, by: CLIENT }
}

fn refused(error: Error) -> Failure {
    let help = match &error {
        Error::Refused => "`toolwright confirmations` lists those that wait",
        Error::Edited(_) => "mend `--args`, or leave it out to approve what was asked",
        Error::Store(_) => "try again in a moment",
    };
    Failure::new(error, help)
}

fn told(asked: &Confirmation) -> Value {
    json!({ "id": asked.id, "session": asked.session, "clientId": asked.client_id, "tool": asked.tool,
        "toolVersion": asked.tool_version, "executionId": asked.execution, "preview": asked.preview,
        "args": asked.shown.as_ref().unwrap_or(&asked.args), "createdAt": asked.created_at,
        "expiresAt": asked.expires_at })
}

fn line(asked: &Confirmation, now: i64) -> String {
    let seconds = (asked.expires_at - now) / 1000;
    let left = if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) };
    let (id, tool, session) = (&asked.id, output::plain(&asked.tool), output::plain(&asked.session));
    format!("{id}  \x1b[1m{tool}\x1b[0m  {session}  {left} left  {}", output::plain(&asked.preview))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

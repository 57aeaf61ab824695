//! `toolwright call`: makes one call from the terminal.

use std::future::ready;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value, json};
use toolwright_contract::{ClientEnvelope, ConfirmationToken, Envelope, ErrorKind, Mode, Principal};
use toolwright_orchestrator::capabilities::{Client, SendFuture};
use toolwright_orchestrator::confirm::{Approver, Proof};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, ConfirmationRecord};
use toolwright_orchestrator::{CallRequest, Orchestrator, ToolCall};
use toolwright_registry::json::duplicate_keys;

use super::confirm::approver;
use crate::args::{Format, Source, parse_mode};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::{store, toolset};

/// The client of sessions that begin at the terminal.
pub(super) const CLIENT_ID: &str = "terminal";
/// Longer arguments are left out of the suggested curl command.
const MAX_SHOWN_ARGUMENT_BYTES: usize = 400;

/// Call a tool and print the envelope; exits with 1 if the call fails
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright call validate_email '{\"email\": \"mira@studio.example\"}'
  echo '{\"query\": \"opening hours\"}' | toolwright call kb_search --mode voice
  toolwright call ignore_user @args.json --session-state '{\"warned\": true}' --format json")]
pub struct Call {
    /// The tool's id, or its directory's name
    tool: String,
    /// The arguments: JSON, or @FILE, or - for stdin (the default if stdin is a pipe)
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// The session's mode
    #[arg(long, value_parser = parse_mode, default_value = "text", value_name = "text|voice")]
    mode: Mode,
    /// The session's state, as the handler sees it
    #[arg(long, value_name = "JSON")]
    session_state: Option<String>,
    /// The session to continue or begin [default: a new session for this call]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The id of the call in its session; the same id again is answered from the record
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Approve the call if it needs confirmation
    #[arg(long)]
    yes: bool,
    /// The id of the principal [default: terminal]
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The principal's org
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// A role of the principal; repeat it for more
    #[arg(long, value_name = "ROLE")]
    role: Vec<String>,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &Call) -> Result<ExitCode> {
    if args.id.is_some() && args.session.is_none() {
        let help = "add `--session ID`: ids of calls belong to their session";
        return Err(Failure::usage("`--id` needs `--session`", help).into());
    }
    let arguments = read_arguments(args.arguments.as_deref())?;
    let state = args.session_state.as_deref().map(parse_session_state).transpose()?;
    let (runtime, imports) = toolset::load_runtime_for_call(&args.source, config)?;
    let tool = toolset::tool_id(runtime.toolset(), &args.tool);
    let call = ToolCall { id: args.id.clone(), tool, args: arguments };
    let envelope = toolset::async_runtime()?.block_on(async {
        let store = store::open_for(config, &curl_arguments(&call)).await?;
        let tools = runtime.clone();
        let orchestrator = Orchestrator::builder(runtime).store(store).policy(config.policy()).build()?;
        let pending = find_pending_confirmation(&orchestrator, args, &call).await?;
        let session = match &pending {
            Some(request) => request.session.clone(),
            None => find_or_create_session(&orchestrator, args, state).await?,
        };
        orchestrator.attach(&session, Arc::new(TerminalClient));
        let tool = tools.toolset().get(&call.tool);
        if args.yes || tool.is_some_and(|tool| tool.spec.requires_confirmation.is_never()) {
            imports.wait_until_ready(tool).await;
        }
        let envelope = match pending {
            Some(request) => orchestrator.approve(&approver(&request.id, &request), None).await?,
            None => call_and_confirm(&orchestrator, &session, call, args.yes).await?,
        };
        // Print the result first: what follows may fail.
        print_envelope(config, &envelope)?;
        // A call that waits for approval needs its session.
        if args.session.is_none() && !needs_confirmation(&envelope) {
            orchestrator.end_session(&session).await?;
        }
        orchestrator.store().flush().await?;
        anyhow::Ok(envelope)
    })?;
    Ok(output::status(envelope.is_ok()))
}

pub(super) fn print_envelope(config: &Config, envelope: &Envelope) -> Result<()> {
    match config.format {
        Format::Human => output::print_json_pretty(&ClientEnvelope(envelope)),
        Format::Json => output::print_json(&ClientEnvelope(envelope)),
    }
}

fn needs_confirmation(envelope: &Envelope) -> bool {
    matches!(&envelope.outcome, Err(failure) if failure.kind == ErrorKind::ConfirmationRequired)
}

async fn find_or_create_session(
    orchestrator: &Orchestrator,
    args: &Call,
    state: Option<Map<String, Value>>,
) -> Result<String> {
    if let Some(id) = &args.session
        && let Some(session) = orchestrator.session(id).await?
    {
        if session.mode != args.mode {
            let message = format!("the session {id} is a {} session", session.mode);
            return Err(Failure::usage(message, format!("add `--mode {}`", session.mode)).into());
        }
        let is_other = args.user.as_ref().is_some_and(|user| session.principal.id != *user)
            || args.org.is_some() && session.principal.org != args.org
            || !args.role.is_empty() && session.principal.roles != args.role;
        if is_other {
            let message = format!("the session {id} belongs to another user or org, or has other roles");
            let help = "leave `--user`, `--org` and `--role` out, or name another session";
            return Err(Failure::usage(message, help).into());
        }
        return Ok(id.clone());
    }
    let mut new = NewSession::new(CLIENT_ID, args.mode);
    new.principal = principal(args);
    new.id.clone_from(&args.session);
    new.state = state.unwrap_or_default();
    Ok(orchestrator.create_session(new).await?.id.clone())
}

fn principal(args: &Call) -> Principal {
    let id = args.user.clone().unwrap_or_else(|| CLIENT_ID.to_owned());
    Principal { id, org: args.org.clone(), roles: args.role.clone() }
}

/// The waiting confirmation request about the same call: `--yes` approves that one, instead of creating another.
async fn find_pending_confirmation(
    orchestrator: &Orchestrator,
    args: &Call,
    call: &ToolCall,
) -> Result<Option<Arc<ConfirmationRecord>>> {
    if !args.yes || args.id.is_some() || args.session_state.is_some() {
        return Ok(None);
    }
    for request in orchestrator.pending(args.session.as_deref()).await? {
        if request.client_id != CLIENT_ID || !request.is_about(&call.tool, &call.args) {
            continue;
        }
        let session = orchestrator.session(&request.session).await?;
        let is_same = session.is_some_and(|session| {
            session.mode == args.mode
                && (args.session.is_some() || session.principal == principal(args))
                && orchestrator.runtime_for(&session).is_some()
        });
        if is_same {
            return Ok(Some(request));
        }
    }
    Ok(None)
}

/// Makes the call. If it needs confirmation, approves it with `yes`, or says how to.
async fn call_and_confirm(
    orchestrator: &Orchestrator,
    session: &str,
    call: ToolCall,
    yes: bool,
) -> Result<Arc<Envelope>> {
    // Each command is a turn: it has a fresh budget, and the same call without an id is another call.
    orchestrator.begin_turn(session).await?;
    let envelope = orchestrator.call(CallRequest::new(session, call)).await;
    let failure = envelope.outcome.as_ref().err();
    let Some(request) = failure.and_then(|failure| failure.confirmation.as_deref()) else {
        return Ok(envelope);
    };
    if !yes {
        output::message(output::sanitize(&request.preview));
        let id = &request.confirmation_id;
        output::help(format_args!(
            "approve it with `toolwright approve {id}`, or repeat this command with `--yes`"
        ));
        return Ok(envelope);
    }
    let token = request.token.as_ref().map(ConfirmationToken::reveal).unwrap_or_default();
    let approver = Approver { token, proof: Proof::Token, session, client_id: CLIENT_ID, by: CLIENT_ID };
    Ok(orchestrator.approve(&approver, None).await?)
}

/// The same call over REST: the path and the other arguments of curl.
fn curl_arguments(call: &ToolCall) -> String {
    let body = json!({ "args": call.args }).to_string().replace('\'', "'\\''");
    let body = if body.len() <= MAX_SHOWN_ARGUMENT_BYTES { &body } else { r#"{"args": …}"# };
    format!("/v1/tools/{}/call -H 'content-type: application/json' -d '{body}'", call.tool)
}

/// Reads arguments from the command line, a file, or stdin if it is a pipe.
pub(super) fn read_arguments(given: Option<&str>) -> Result<Value> {
    let (text, source) = match given {
        Some("-") => (read_stdin()?, "on stdin"),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => (read_file(path)?, "in the file"),
            None => (text.to_owned(), "on the command line"),
        },
        None if std::io::stdin().is_terminal() => (String::new(), ""),
        None => (read_stdin()?, "on stdin"),
    };
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    Ok(parse_json(&text, &format!("the arguments {source}"))?)
}

fn read_stdin() -> Result<String, Failure> {
    std::io::read_to_string(std::io::stdin()).map_err(|error| {
        Failure::usage(
            format!("cannot read the arguments on stdin: {error}"),
            "pipe JSON in UTF-8 into the command",
        )
    })
}

fn read_file(path: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the arguments in {path}: {error}");
        Failure::usage(message, "name an existing file after `@`")
    })
}

fn parse_session_state(text: &str) -> Result<Map<String, Value>, Failure> {
    match parse_json(text, "--session-state")? {
        Value::Object(state) => Ok(state),
        _ => Err(Failure::usage(
            "--session-state must be a JSON object",
            "for example: --session-state '{\"step\": 2}'",
        )),
    }
}

fn parse_json(text: &str, what: &str) -> Result<Value, Failure> {
    if let Some((_, name)) = duplicate_keys(text).first() {
        return Err(Failure::usage(format!("{what} have `{name}` twice"), "remove one of them"));
    }
    serde_json::from_str(text).map_err(|error| {
        let help = "quote the JSON: toolwright call kb_get '{\"ids\": [\"doc:hours\"]}'";
        Failure::usage(format!("{what} must be JSON: {error}"), help)
    })
}

/// The client of a terminal session: prints messages and progress to stderr.
#[derive(Debug)]
pub(super) struct TerminalClient;

impl Client for TerminalClient {
    fn send(&self, message: Value) -> SendFuture {
        output::message(format_args!("\x1b[2mmessage\x1b[0m {message}"));
        Box::pin(ready(Ok(())))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        let (percent, message) = (fraction * 100.0, message.unwrap_or_default());
        output::message(format_args!("\x1b[2mprogress\x1b[0m {percent:.0} % {message}"));
    }
}

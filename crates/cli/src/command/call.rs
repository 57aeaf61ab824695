//! `toolwright call`: makes one call from the terminal.

use std::collections::BTreeSet;
use std::future::ready;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value};
use toolwright_contract::arguments;
use toolwright_contract::escape::escape;
use toolwright_contract::{ADMIN, Mode, Principal};
use toolwright_orchestrator::capabilities::{Client, SendFuture};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{Orchestrator, Runtime, ToolCall};
use toolwright_registry::json::duplicate_keys;

use crate::args::{Format, Source, parse_mode};
use crate::call_target::{Answer, CallTarget, Waiting};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::server_client::{EventPrinter, encode};
use crate::store::{self, StoreAccess};
use crate::toolset;

/// The client of sessions that begin at the terminal.
pub(crate) const CLIENT_ID: &str = "terminal";

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
    #[arg(help_heading = "Session and principal", long, value_parser = parse_mode, default_value = "text", value_name = "text|voice")]
    mode: Mode,
    /// The session's state, as the handler sees it
    #[arg(help_heading = "Session and principal", long, value_name = "JSON")]
    session_state: Option<String>,
    /// The session to continue or begin [default: a new session for this call]
    #[arg(help_heading = "Session and principal", long, value_name = "ID")]
    session: Option<String>,
    /// The id of the call in its session; the same id again is answered from the record
    #[arg(help_heading = "Session and principal", long, value_name = "ID")]
    id: Option<String>,
    /// Approve the call if it needs confirmation
    #[arg(long)]
    yes: bool,
    /// The id of the principal [default: terminal]
    #[arg(help_heading = "Session and principal", long, value_name = "ID")]
    user: Option<String>,
    /// The principal's org
    #[arg(help_heading = "Session and principal", long, value_name = "ORG")]
    org: Option<String>,
    /// A role of the principal; repeat it for more
    #[arg(help_heading = "Session and principal", long, value_name = "ROLE")]
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
    let answer = toolset::async_runtime()?.block_on(async {
        let target = CallPlan::new(config, args).await?;
        let call = ToolCall { id: args.id.clone(), tool: target.tool.clone(), args: arguments };
        make(config, args, &target, call, state).await
    })?;
    Ok(output::status(answer.is_ok))
}

/// The target of the call, with its session options.
struct CallPlan {
    target: CallTarget,
    /// The tool's id.
    tool: String,
    /// The runtime and the imported tools of a call in this process.
    own: Option<(Runtime, Imports)>,
}

impl CallPlan {
    async fn new(config: &Config, args: &Call) -> Result<Self> {
        match store::open_or_find_server(config).await? {
            StoreAccess::Own(store) => {
                let (runtime, imports) =
                    toolset::load_runtime_for_call(&args.source, config, Some(&args.tool))?;
                let tool = toolset::tool_id(runtime.toolset(), &args.tool);
                let builder = Orchestrator::builder(runtime.clone()).store(*store).policy(config.policy());
                Ok(Self { target: CallTarget::Own(builder.build()?), tool, own: Some((runtime, imports)) })
            }
            StoreAccess::Server(server) => {
                toolset::refuse_artifact(&args.source, &server)?;
                let path = format!("/v1/tools/{}?all=true", encode(&args.tool));
                let is_known = server.send(Method::GET, &path, None, None).await?.is_ok();
                let tool = if is_known { args.tool.clone() } else { args.tool.replace('-', "_") };
                Ok(Self { target: CallTarget::Server(server), tool, own: None })
            }
        }
    }

    /// Prints messages and progress of the session, and waits for an imported tool that will run.
    async fn attach(&self, session: &str, yes: bool) -> Result<Option<EventPrinter>> {
        match (&self.target, &self.own) {
            (CallTarget::Server(server), _) => return server.print_events(session).await.map(Some),
            (CallTarget::Own(orchestrator), Some((runtime, imports))) => {
                orchestrator.attach(session, Arc::new(TerminalClient));
                let tool = runtime.toolset().get(&self.tool);
                if yes || tool.is_some_and(|tool| tool.spec.requires_confirmation.is_never()) {
                    imports.wait_until_ready(tool).await;
                }
            }
            (CallTarget::Own(_), None) => {}
        }
        Ok(None)
    }
}

async fn make(
    config: &Config,
    args: &Call,
    plan: &CallPlan,
    call: ToolCall,
    state: Option<Map<String, Value>>,
) -> Result<Answer> {
    let target = &plan.target;
    let waiting = find_waiting(target, args, &call).await?;
    let session = match &waiting {
        Some(waiting) => waiting.session.clone(),
        None => find_or_create_session(target, args, state).await?,
    };
    let printer = plan.attach(&session, args.yes).await?;
    let answer = match waiting {
        Some(waiting) => target.approve(&session, &waiting.id).await?,
        None => call_and_confirm(target, &session, call, args.yes).await?,
    };
    if let Some(printer) = printer {
        printer.finish().await;
    }
    // Print the result first: what follows may fail.
    print_envelope(config, &answer)?;
    if let Some(page) = target.failure_page(&session, &answer) {
        output::message(format_args!("the server's log has the cause; the steps of the call: {page}"));
    }
    // A call that waits for approval needs its session.
    if args.session.is_none() && answer.question.is_none() {
        target.end_session(&session).await?;
    }
    target.flush().await?;
    Ok(answer)
}

pub(super) fn print_envelope(config: &Config, answer: &Answer) -> Result<()> {
    match config.format {
        Format::Human => output::print_json_pretty(&answer.envelope),
        Format::Json => output::print_json(&answer.envelope),
    }
}

async fn find_or_create_session(
    target: &CallTarget,
    args: &Call,
    state: Option<Map<String, Value>>,
) -> Result<String> {
    if let Some(id) = &args.session
        && let Some(session) = target.session(id).await?
    {
        if session.mode != args.mode {
            let message = format!("the session {id} is a {} session", session.mode);
            return Err(Failure::usage(message, format!("add `--mode {}`", session.mode)).into());
        }
        let is_other = args.user.as_ref().is_some_and(|user| session.principal.id != *user)
            || args.org.is_some() && session.principal.org != args.org
            || !args.role.is_empty() && !has_roles(&session.principal, args);
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
    target.create_session(new).await
}

/// Whether a session has the roles that were named. Without `--user`, the operator's own role may be among them or not.
fn has_roles(principal: &Principal, args: &Call) -> bool {
    let named = |roles: &[String]| -> BTreeSet<String> {
        let is_implied = |role: &&String| args.user.is_none() && *role == ADMIN;
        roles.iter().filter(|role| !is_implied(role)).cloned().collect()
    };
    named(&principal.roles) == named(&args.role)
}

/// The user of the terminal is the operator, unless another is named.
fn principal(args: &Call) -> Principal {
    let (org, mut roles) = (args.org.clone(), args.role.clone());
    let id = args.user.clone().unwrap_or_else(|| {
        roles.push(ADMIN.to_owned());
        CLIENT_ID.to_owned()
    });
    Principal { id, org, roles }
}

/// The waiting confirmation request about the same call: `--yes` approves that one, instead of creating another.
async fn find_waiting(target: &CallTarget, args: &Call, call: &ToolCall) -> Result<Option<Waiting>> {
    if !args.yes || args.id.is_some() || args.session_state.is_some() {
        return Ok(None);
    }
    let principal = principal(args);
    for waiting in target.waiting(args.session.as_deref(), &principal, call).await? {
        let session = target.session(&waiting.session).await?;
        let is_same = session.is_some_and(|session| {
            session.mode == args.mode
                && (args.session.is_some() || session.principal == principal)
                && session.is_loaded
        });
        if is_same {
            return Ok(Some(waiting));
        }
    }
    Ok(None)
}

/// Makes the call. If it needs confirmation, approves it with `yes`, or says how to.
async fn call_and_confirm(target: &CallTarget, session: &str, call: ToolCall, yes: bool) -> Result<Answer> {
    // Each command is a turn: it has a fresh budget, and the same call without an id is another call.
    let answer = target.call(session, call).await?;
    let Some(question) = &answer.question else { return Ok(answer) };
    if !yes {
        output::message(escape(&question.preview));
        let id = &question.id;
        output::help(format_args!(
            "approve it with `toolwright approve {id}`, or repeat this command with `--yes`"
        ));
        return Ok(answer);
    }
    target.approve(session, question.token.as_deref().unwrap_or(&question.id)).await
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

pub(crate) fn parse_session_state(text: &str) -> Result<Map<String, Value>, Failure> {
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
    if let Err(problem) = arguments::check_integers(text.as_bytes()) {
        return Err(Failure::usage(format!("{what}: {problem}"), "send the number as a string"));
    }
    serde_json::from_str(text).map_err(|error| {
        let help = "quote the JSON: toolwright call kb_get '{\"ids\": [\"doc:hours\"]}'";
        Failure::usage(format!("{what} must be JSON: {error}"), help)
    })
}

/// The client of a terminal session: prints messages and progress to stderr.
#[derive(Debug)]
pub(crate) struct TerminalClient;

impl Client for TerminalClient {
    fn send(&self, message: Value) -> SendFuture {
        output::message(format_args!("\x1b[2mmessage\x1b[0m {}", escape(&message.to_string())));
        Box::pin(ready(Ok(())))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        let (percent, message) = (fraction * 100.0, escape(message.unwrap_or_default()));
        output::message(format_args!("\x1b[2mprogress\x1b[0m {percent:.0} % {message}"));
    }
}

//! `toolwright call`: one call of one tool, from the terminal.

use std::future::ready;
use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Map, Value};
use toolwright_contract::{ClientEnvelope, ConfirmationToken, Envelope, ErrorKind};
use toolwright_orchestrator::capabilities::{Client, Delivery};
use toolwright_orchestrator::confirm::{Approver, Proof};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, Confirmation, Principal};
use toolwright_orchestrator::{CallRequest, Orchestrator, ToolCall};
use toolwright_registry::json::duplicate_keys;

use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::{store, toolset};

/// Whose sessions these are.
pub(super) const CLIENT: &str = "terminal";
/// Of arguments that are shown as an example.
const LONGEST_SHOWN: usize = 400;

pub fn run(common: &Common, args: &args::Call) -> Result<ExitCode> {
    if args.id.is_some() && args.session.is_none() {
        let help = "add `--session ID`: the same id in the same session is answered from the record";
        return Err(Failure::usage("an id belongs to a session", help).into());
    }
    let config = Config::load(common, None)?;
    let arguments = arguments(args.arguments.as_deref())?;
    let state = args.session_state.as_deref().map(state).transpose()?;
    let (runtime, imports) = toolset::runtime_told(common, &args.source, &config)?;
    let tool = toolset::id_of(runtime.toolset(), &args.tool);
    let call = ToolCall { id: args.id.clone(), tool, args: arguments };
    let envelope = toolset::tokio()?.block_on(async {
        let store = store::open_for(&config, &over_rest(&call)).await?;
        let known = runtime.clone();
        let orchestrator = Orchestrator::builder(runtime).store(store).policy(config.policy()).build()?;
        let waiting = waiting(&orchestrator, args, &call).await?;
        let session = match &waiting {
            Some(asked) => asked.session.clone(),
            None => session(&orchestrator, args, state).await?,
        };
        orchestrator.attach(&session, Arc::new(Terminal));
        let wanted = known.toolset().get(&call.tool);
        if args.yes || wanted.is_some_and(|tool| tool.spec.requires_confirmation.is_never()) {
            imports.ready(wanted).await;
        }
        let envelope = match waiting {
            Some(asked) => approved(&orchestrator, &asked).await?,
            None => answered(&orchestrator, &session, call, args.yes).await?,
        };
        // Whatever happens now, the result is not lost.
        show(common, &envelope)?;
        // A call that waits for a person needs its session.
        let waits =
            matches!(&envelope.outcome, Err(failure) if failure.kind == ErrorKind::ConfirmationRequired);
        if args.session.is_none() && !waits {
            orchestrator.end_session(&session).await?;
        }
        orchestrator.store().flush().await?;
        anyhow::Ok(envelope)
    })?;
    Ok(if envelope.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what a call came to.
pub(super) fn show(common: &Common, envelope: &Envelope) -> Result<()> {
    output::data_line(match common.format {
        Format::Human => serde_json::to_string_pretty(&ClientEnvelope(envelope))?,
        Format::Json => serde_json::to_string(&ClientEnvelope(envelope))?,
    });
    Ok(())
}

/// The session that is named, or a new one.
async fn session(
    orchestrator: &Orchestrator,
    args: &args::Call,
    state: Option<Map<String, Value>>,
) -> Result<String> {
    if let Some(id) = &args.session
        && let Some(known) = orchestrator.session(id).await?
    {
        if known.mode != args.mode {
            let message = format!("the session {id} is a {} session", known.mode);
            return Err(Failure::usage(message, format!("add `--mode {}`", known.mode)).into());
        }
        let is_other = args.user.as_ref().is_some_and(|user| known.principal.id != *user)
            || args.org.is_some() && known.principal.org != args.org
            || !args.role.is_empty() && known.principal.roles != args.role;
        if is_other {
            let message = format!("the session {id} was begun by somebody else, or with other roles");
            return Err(Failure::usage(
                message,
                "leave `--user`, `--org` and `--role` out, or name another session",
            )
            .into());
        }
        return Ok(id.clone());
    }
    let mut new = NewSession::new(CLIENT, args.mode);
    new.principal = principal(args);
    new.id.clone_from(&args.session);
    new.state = state.unwrap_or_default();
    Ok(orchestrator.create_session(new).await?.id.clone())
}

fn principal(args: &args::Call) -> Principal {
    let id = args.user.clone().unwrap_or_else(|| CLIENT.to_owned());
    Principal { id, org: args.org.clone(), roles: args.role.clone() }
}

/// The question about this very call that waits already: `--yes` answers that one, and asks no other.
async fn waiting(
    orchestrator: &Orchestrator,
    args: &args::Call,
    call: &ToolCall,
) -> Result<Option<Arc<Confirmation>>> {
    if !args.yes || args.id.is_some() || args.session_state.is_some() {
        return Ok(None);
    }
    for asked in orchestrator.pending(args.session.as_deref()).await? {
        if asked.client_id != CLIENT || !asked.is_about(&call.tool, &call.args) {
            continue;
        }
        let session = orchestrator.session(&asked.session).await?;
        let is_same = session.is_some_and(|session| {
            session.mode == args.mode
                && (args.session.is_some() || session.principal == principal(args))
                && orchestrator.runtime_for(&session).is_some()
        });
        if is_same {
            return Ok(Some(asked));
        }
    }
    Ok(None)
}

/// Whoever can open the store may answer what was asked from the terminal.
async fn approved(orchestrator: &Orchestrator, asked: &Confirmation) -> Result<Arc<Envelope>> {
    let (token, session, client_id) = (&asked.id, &asked.session, &asked.client_id);
    let approver = Approver { token, proof: Proof::Transport, session, client_id, by: CLIENT };
    Ok(orchestrator.approve(&approver, None).await?)
}

/// The same call for curl.
fn over_rest(call: &ToolCall) -> String {
    let body = serde_json::json!({ "args": call.args }).to_string().replace('\'', "'\\''");
    let body = if body.len() <= LONGEST_SHOWN { &body } else { r#"{"args": …}"# };
    format!("/v1/tools/{}/call -H 'content-type: application/json' -d '{body}'", call.tool)
}

/// The envelope, after the approval that `--yes` gives in advance.
async fn answered(
    orchestrator: &Orchestrator,
    session: &str,
    call: ToolCall,
    yes: bool,
) -> Result<Arc<Envelope>> {
    // Each command is a turn of its own: its budget is fresh, and the same call without an id is another call.
    orchestrator.begin_turn(session).await?;
    let envelope = orchestrator.call(CallRequest::new(session, call)).await;
    let failure = envelope.outcome.as_ref().err();
    let Some(request) = failure.and_then(|failure| failure.confirmation.as_deref()) else {
        return Ok(envelope);
    };
    if !yes {
        output::message(format_args!(
            "{}\n  \x1b[1mhelp\x1b[0m: `toolwright approve {}` approves it, and so does this command with `--yes`",
            output::plain(&request.preview),
            request.confirmation_id,
        ));
        return Ok(envelope);
    }
    let token = request.token.as_ref().map(ConfirmationToken::reveal).unwrap_or_default();
    let approver = Approver { token, proof: Proof::Token, session, client_id: CLIENT, by: CLIENT };
    Ok(orchestrator.approve(&approver, None).await?)
}

/// From the command line, from a file, or from stdin when it is a pipe or asked for.
pub(super) fn arguments(given: Option<&str>) -> Result<Value> {
    let (text, from) = match given {
        Some("-") => (stdin()?, "on stdin"),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => (file(path)?, "in the file"),
            None => (text.to_owned(), "on the command line"),
        },
        None if std::io::stdin().is_terminal() => (String::new(), ""),
        None => (stdin()?, "on stdin"),
    };
    if text.trim().is_empty() {
        Ok(Value::Object(Map::new()))
    } else {
        Ok(parse(&text, &format!("the arguments {from}"))?)
    }
}

fn stdin() -> Result<String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| {
        Failure::usage(
            format!("the arguments on stdin cannot be read: {error}"),
            "pipe JSON in UTF-8 into it",
        )
    })?;
    Ok(text)
}

fn file(path: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the arguments in {path}: {error}"),
            "name an existing file after `@`",
        )
    })
}

fn state(text: &str) -> Result<Map<String, Value>, Failure> {
    match parse(text, "--session-state")? {
        Value::Object(state) => Ok(state),
        _ => Err(Failure::usage(
            "--session-state must be a JSON object",
            "for example: --session-state '{\"step\": 2}'",
        )),
    }
}

fn parse(text: &str, what: &str) -> Result<Value, Failure> {
    if let Some((_, name)) = duplicate_keys(text).first() {
        return Err(Failure::usage(format!("{what} have `{name}` twice"), "say which one is meant"));
    }
    serde_json::from_str(text).map_err(|error| {
        let help = "quote it whole: toolwright call kb_get '{\"ids\": [\"doc:hours\"]}'";
        Failure::usage(format!("{what} must be JSON: {error}"), help)
    })
}

/// The client of a terminal session: it shows messages and progress on stderr.
#[derive(Debug)]
pub(super) struct Terminal;

impl Client for Terminal {
    fn send(&self, message: Value) -> Delivery {
        output::message(format_args!("\x1b[2mmessage\x1b[0m {message}"));
        Box::pin(ready(Ok(())))
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        let percent = fraction * 100.0;
        output::message(format_args!(
            "\x1b[2mprogress\x1b[0m {percent:.0} % {}",
            message.unwrap_or_default()
        ));
    }
}

//! `toolwright call`: one call of one tool, from the terminal.

use std::future::ready;
use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Map, Value};
use toolwright_orchestrator::capabilities::{Client, Delivery};
use toolwright_orchestrator::{Request, Session};

use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::toolset;

pub fn run(common: &Common, args: &args::Call) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let arguments = arguments(args.arguments.as_deref())?;
    let mut session = Session::new("terminal", args.mode);
    session.client = Arc::new(Terminal);
    if let Some(text) = &args.session_state {
        session.state = state(text)?;
    }
    let runtime = toolset::runtime(&args.source, &config)?;
    let tool = toolset::id_of(runtime.toolset(), &args.tool);
    let request = Request::new(tool, arguments, Arc::new(session));
    let envelope = toolset::tokio()?.block_on(runtime.execute(request));
    let text = match common.format {
        Format::Human => serde_json::to_string_pretty(&envelope)?,
        Format::Json => serde_json::to_string(&envelope)?,
    };
    output::data_line(text);
    Ok(if envelope.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// From the command line, from a file, or from stdin when it is a pipe or asked for.
fn arguments(given: Option<&str>) -> Result<Value> {
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

fn state(text: &str) -> Result<Value, Failure> {
    match parse(text, "--session-state")? {
        state @ Value::Object(_) => Ok(state),
        _ => Err(Failure::usage(
            "--session-state must be a JSON object",
            "for example: --session-state '{\"step\": 2}'",
        )),
    }
}

fn parse(text: &str, what: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        let help = "quote it whole: toolwright call kb_get '{\"ids\": [\"doc:hours\"]}'";
        Failure::usage(format!("{what} must be JSON: {error}"), help)
    })
}

/// The client of a terminal session: it shows messages and progress on stderr.
#[derive(Debug)]
struct Terminal;

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

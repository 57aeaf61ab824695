//! `toolwright chat`: a conversation with the agent in the terminal. The text goes to stdout, everything else to stderr.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tokio::sync::mpsc;
use toolwright_agent::{
    Agent, ApprovalAnswer, ApprovalPart, Event, EventBody, Turn, TurnOutcome, TurnRequest, UserMessage,
};
use toolwright_contract::visible::{escape, escape_lines};
use toolwright_contract::{ADMIN, Mode, Principal};
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, SessionRecord};

use super::call::{CLIENT_ID, TerminalClient};
use crate::args::{Format, Source};
use crate::config::{AgentFlags, Config};
use crate::output::{self, Failure};
use crate::{store, toolset};

/// The id of the last chat, for `--continue`.
const LAST_CHAT_FILE: &str = ".toolwright/last-chat";
/// Longer arguments are shortened.
const MAX_SHOWN_CHARS: usize = 200;

/// Talk to the agent in the terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright chat                              ask, line by line; Ctrl-C stops an answer, Ctrl-D ends
  toolwright chat 'Which studio is quiet?'     one question
  toolwright chat --continue                   go on with the last chat
  toolwright chat --agent ollama/qwen3         with another model
  echo 'What are the hours?' | toolwright chat --format json")]
pub struct Chat {
    /// The message [default: lines of stdin]
    message: Option<String>,
    /// Continue the last chat
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    continues: bool,
    /// Continue this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &Chat) -> Result<ExitCode> {
    let (runtime, _imports) = toolset::load_runtime_for_call(&args.source, config)?;
    let tokio = toolset::async_runtime()?;
    let is_ok = tokio.block_on(async {
        let store = store::open_with_help(
            &config.store,
            "chat with it over `/api/chat`, or name another store with --store",
        )
        .await?;
        let orchestrator = Orchestrator::builder(runtime)
            .store(store)
            .policy(config.policy())
            .capacity(config.capacity())
            .build()?;
        let agent = config.agent(&args.agent, orchestrator.clone(), None).await?;
        let session = open_session(config, args, &orchestrator).await?;
        orchestrator.attach(&session.id, Arc::new(TerminalClient));
        let mut chat = Terminal { agent, session, format: config.format, lines: read_lines(), is_ok: true };
        chat.greet();
        match &args.message {
            Some(message) => chat.turn(message).await?,
            None => chat.converse().await?,
        }
        orchestrator.store().flush().await?;
        orchestrator.store().close().await;
        anyhow::Ok(chat.is_ok)
    })?;
    // The thread that reads stdin may wait for ever.
    tokio.shutdown_background();
    Ok(output::status(is_ok))
}

async fn open_session(
    config: &Config,
    args: &Chat,
    orchestrator: &Orchestrator,
) -> Result<Arc<SessionRecord>> {
    let file = config.beside(LAST_CHAT_FILE);
    let id = match (&args.session, args.continues) {
        (Some(id), _) => Some(id.clone()),
        (None, true) => {
            Some(std::fs::read_to_string(&file).map(|id| id.trim().to_owned()).map_err(|_| {
                Failure::usage("there is no chat to continue", "begin one with `toolwright chat`")
            })?)
        }
        (None, false) => None,
    };
    if let Some(id) = id {
        let session = orchestrator.session(&id).await?;
        return session.ok_or_else(|| {
            Failure::usage(
                format!("there is no session `{}`", escape(&id)),
                "begin a new chat with `toolwright chat`",
            )
            .into()
        });
    }
    let mut new = NewSession::new(CLIENT_ID, Mode::Text);
    new.principal.roles.push(ADMIN.to_owned());
    let session = orchestrator.create_session(new).await?;
    let written = file
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&file, &session.id));
    if let Err(error) = written {
        output::warning(format_args!(
            "`--continue` will not find this chat: cannot write {}: {error}",
            file.display()
        ));
    }
    Ok(session)
}

/// A conversation in the terminal.
struct Terminal {
    agent: Agent,
    session: Arc<SessionRecord>,
    format: Format,
    lines: mpsc::Receiver<String>,
    /// No turn has failed.
    is_ok: bool,
}

/// How a run of a turn ended.
enum Ended {
    Approvals(Vec<ApprovalPart>),
    Over,
}

impl Terminal {
    fn greet(&self) {
        let model = self.agent.model();
        let name = match model.provider() == model.name() {
            true => model.name().to_owned(),
            false => format!("{}/{}", model.provider(), model.name()),
        };
        output::message(format_args!("\x1b[2m{name} · session {}\x1b[0m", self.session.id));
    }

    async fn converse(&mut self) -> Result<()> {
        loop {
            prompt("> ");
            let line = tokio::select! {
                line = self.lines.recv() => line,
                _ = tokio::signal::ctrl_c() => None,
            };
            match line {
                None => return Ok(()),
                Some(line) if line.trim().is_empty() => {}
                Some(line) => self.turn(&line).await?,
            }
        }
    }

    /// One message, with the answers to what it asks.
    async fn turn(&mut self, text: &str) -> Result<()> {
        let id = format!("msg_{}", self.agent.history(&self.session.id).await.map_err(failed)?.len() + 1);
        let request = TurnRequest::message(&self.session.id, UserMessage::text(id, text));
        let turn = self.agent.start(request).await.map_err(failed)?;
        let mut ended = self.show(&turn).await?;
        loop {
            let Ended::Approvals(approvals) = ended else { return Ok(()) };
            ended = Ended::Over;
            for approval in approvals {
                let Some(approved) = self.ask(&approval).await else {
                    let id = approval.confirmation_id();
                    output::help(format_args!(
                        "answer it with `toolwright approve {id}` or `toolwright deny {id}`"
                    ));
                    return Ok(());
                };
                let turn = self.agent.answer(self.answer(&approval, approved)).await.map_err(failed)?;
                ended = self.show(&turn).await?;
            }
        }
    }

    fn answer(&self, approval: &ApprovalPart, approved: bool) -> ApprovalAnswer {
        ApprovalAnswer {
            session: self.session.id.clone(),
            approval_id: approval.id.clone(),
            approved,
            reason: None,
            args: None,
            principal: Arc::new(self.principal()),
        }
    }

    fn principal(&self) -> Principal {
        self.session.principal.clone()
    }

    /// Asks on the terminal. `None` if nobody can answer.
    async fn ask(&mut self, approval: &ApprovalPart) -> Option<bool> {
        output::message(format_args!("\x1b[1;33mapprove?\x1b[0m {}", escape(&approval.preview)));
        if !std::io::stdin().is_terminal() {
            return None;
        }
        loop {
            prompt("y/n ");
            let line = tokio::select! {
                line = self.lines.recv() => line?,
                _ = tokio::signal::ctrl_c() => return None,
            };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return Some(true),
                "n" | "no" => return Some(false),
                _ => {}
            }
        }
    }

    /// Prints the events of a turn until it ends or pauses. Ctrl-C stops the turn.
    async fn show(&mut self, turn: &Turn) -> Result<Ended> {
        let mut events = self.agent.events(&self.session.id, turn.resumed_at).await.map_err(failed)?;
        let mut printer = Printer::new(self.format);
        let mut outcome = None;
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                _ = tokio::signal::ctrl_c() => {
                    self.agent.stop(&self.session.id).await.map_err(failed)?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            if let EventBody::TurnEnded { outcome: ended } = &event.body {
                outcome = Some(ended.clone());
            }
            printer.print(&event)?;
        }
        printer.end_line();
        match outcome {
            Some(TurnOutcome::AwaitsApproval) => return Ok(Ended::Approvals(printer.approvals)),
            Some(TurnOutcome::Failed { error }) => {
                self.is_ok = false;
                output::error(escape_lines(&error.message));
            }
            Some(TurnOutcome::Stopped) => output::message("stopped"),
            Some(TurnOutcome::StepLimit { max_steps }) => {
                output::warning(format_args!("stopped after {max_steps} steps (`[agent] max_steps`)"));
            }
            _ => {}
        }
        Ok(Ended::Over)
    }
}

/// Prints events for people, or as lines of JSON.
struct Printer {
    format: Format,
    /// The cursor is not at the begin of a line of stdout.
    is_in_line: bool,
    approvals: Vec<ApprovalPart>,
}

impl Printer {
    const fn new(format: Format) -> Self {
        Self { format, is_in_line: false, approvals: Vec::new() }
    }

    fn print(&mut self, event: &Event) -> Result<()> {
        if let EventBody::ApprovalRequested { approval } = &event.body {
            self.approvals.push(approval.clone());
        }
        if self.format == Format::Json {
            return output::print_json(&json!({ "turn": &*event.turn, "at": event.at, "event": event.body }));
        }
        match &event.body {
            EventBody::Text { text, .. } => {
                output::print(escape_lines(text));
                self.is_in_line = !text.ends_with('\n');
            }
            EventBody::PartEnded { .. } => self.end_line(),
            EventBody::ToolCalled { call, .. } => {
                self.end_line();
                let args: String = call.args.to_string().chars().take(MAX_SHOWN_CHARS).collect();
                output::message(format_args!("\x1b[2m→ {} {}\x1b[0m", escape(&call.tool), escape(&args)));
            }
            EventBody::ToolFinished { result } => {
                let sign = if result.is_error { "\x1b[31m✗\x1b[0m" } else { "\x1b[32m✓\x1b[0m" };
                let error = result.content["error"].as_str().filter(|_| result.is_error).unwrap_or_default();
                let (tool, ms) = (escape(&result.tool), result.duration_ms);
                output::message(format_args!("{sign} \x1b[2m{tool} {ms} ms {}\x1b[0m", escape(error)));
            }
            _ => {}
        }
        Ok(())
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_in_line) {
            output::print("\n");
        }
    }
}

fn prompt(text: &str) {
    if std::io::stdin().is_terminal() {
        output::print(text);
    }
}

/// The lines of stdin, read by a thread of their own, so that Ctrl-C is noticed.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn failed(error: toolwright_agent::Error) -> Failure {
    Failure::new(error, "begin a new chat with `toolwright chat`, or see docs/how-to/chat.md")
}

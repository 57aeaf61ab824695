//! `toolwright chat`: a conversation with the agent in the terminal, through the server if one uses the store. The text
//! goes to stdout, everything else to stderr.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use toolwright_agent::{EventBody, Model, TurnOutcome};
use toolwright_contract::escape::{escape, escape_lines};
use toolwright_contract::{ADMIN, Mode};
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, Store};

use super::call::{CLIENT_ID, TerminalClient};
use crate::args::{Format, Source};
use crate::call_target::CallTarget;
use crate::chat_target::{ChatEvent, ChatEvents, ChatTarget, ConfirmationPrompt, Conversation};
use crate::config::{AgentFlags, Config};
use crate::output::{self, Failure};
use crate::server_client::ServerClient;
use crate::store::{self, StoreAccess};
use crate::toolset;

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
    let tokio = toolset::async_runtime()?;
    let is_ok = tokio.block_on(async {
        match store::open_or_find_server(config).await? {
            StoreAccess::Own(store) => chat_alone(config, args, *store).await,
            StoreAccess::Server(server) => chat_through(config, args, server).await,
        }
    })?;
    // The thread that reads stdin may wait for ever.
    tokio.shutdown_background();
    Ok(output::status(is_ok))
}

/// Chats with an agent in this process.
async fn chat_alone(config: &Config, args: &Chat, store: Store) -> Result<bool> {
    let (runtime, _imports) = toolset::load_runtime_for_call(&args.source, config, None)?;
    let builder = Orchestrator::builder(runtime).store(store);
    let orchestrator = builder.policy(config.policy()).capacity(config.capacity()).build()?;
    let agent = config.agent(&args.agent, orchestrator.clone(), None).await?;
    let name = model_name(agent.model());
    let sessions = CallTarget::Own(orchestrator.clone());
    let conversation = open(config, args, &sessions, ChatTarget::Own(agent)).await?;
    orchestrator.attach(&conversation.session, Arc::new(TerminalClient));
    let is_ok = converse(config, args, conversation, &format!("{name} · ")).await?;
    orchestrator.store().flush().await?;
    orchestrator.store().close().await;
    Ok(is_ok)
}

/// Chats with the agent of the server that uses the store.
async fn chat_through(config: &Config, args: &Chat, server: ServerClient) -> Result<bool> {
    toolset::refuse_artifact(&args.source, &server)?;
    if let Some(name) = args.agent.name() {
        let url = &server.file.url;
        let message = format!(
            "the server at {url} uses the store, and answers with its own agent, not `{}`",
            escape(name)
        );
        let help = "leave `--agent` and TOOLWRIGHT_AGENT out, or name another store with `--store URL`";
        return Err(Failure::usage(message, help).into());
    }
    let sessions = CallTarget::Server(server.clone());
    let conversation = open(config, args, &sessions, ChatTarget::Server(server.clone())).await?;
    let printer = server.print_events(&conversation.session).await?;
    let is_ok = converse(config, args, conversation, "").await?;
    printer.finish().await;
    Ok(is_ok)
}

/// The session of the chat: the one that is named, the last one, or a new one.
async fn open(
    config: &Config,
    args: &Chat,
    sessions: &CallTarget,
    target: ChatTarget,
) -> Result<Conversation> {
    let file = config.beside(LAST_CHAT_FILE);
    let known = match (&args.session, args.continues) {
        (Some(id), _) => Some(id.clone()),
        (None, true) => {
            Some(std::fs::read_to_string(&file).map(|id| id.trim().to_owned()).map_err(|_| {
                Failure::usage("there is no chat to continue", "begin one with `toolwright chat`")
            })?)
        }
        (None, false) => None,
    };
    if let Some(session) = known {
        let Some(found) = sessions.session(&session).await? else {
            let message = format!("there is no session `{}`", escape(&session));
            return Err(Failure::usage(message, "begin a new chat with `toolwright chat`").into());
        };
        return Ok(Conversation { target, session, principal: found.principal });
    }
    let mut new = NewSession::new(CLIENT_ID, Mode::Text);
    new.principal.roles.push(ADMIN.to_owned());
    let principal = new.principal.clone();
    let session = sessions.create_session(new).await?;
    remember(&file, &session);
    Ok(Conversation { target, session, principal })
}

/// Remembers the session for `--continue`.
fn remember(file: &Path, session: &str) {
    let written =
        file.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(file, session));
    if let Err(error) = written {
        let file = file.display();
        output::warning(format_args!("`--continue` will not find this chat: cannot write {file}: {error}"));
    }
}

fn model_name(model: &Model) -> String {
    match model.provider() == model.name() {
        true => model.name().to_owned(),
        false => format!("{}/{}", model.provider(), model.name()),
    }
}

/// Runs the conversation. False when a turn has failed.
async fn converse(config: &Config, args: &Chat, conversation: Conversation, greeting: &str) -> Result<bool> {
    output::message(format_args!("\x1b[2m{greeting}session {}\x1b[0m", conversation.session));
    let mut chat = Terminal { conversation, format: config.format, lines: read_lines(), is_ok: true };
    // The calls that the last turn of a continued chat waits for.
    if args.continues || args.session.is_some() {
        let questions = chat.conversation.open_questions().await?;
        chat.settle(RunOutcome::Questions(questions)).await?;
    }
    match &args.message {
        Some(message) => chat.turn(message).await?,
        None => chat.read_messages().await?,
    }
    Ok(chat.is_ok)
}

/// A conversation in the terminal.
struct Terminal {
    conversation: Conversation,
    format: Format,
    lines: mpsc::Receiver<String>,
    /// No turn has failed.
    is_ok: bool,
}

/// How a run of a turn ended.
enum RunOutcome {
    Questions(Vec<ConfirmationPrompt>),
    Over,
}

impl Terminal {
    async fn read_messages(&mut self) -> Result<()> {
        loop {
            match self.read_line("> ").await? {
                None => return Ok(()),
                Some(line) if line.trim().is_empty() => {}
                Some(line) => self.turn(&line).await?,
            }
        }
    }

    /// The next line of stdin. `None` at its end, or on Ctrl-C.
    async fn read_line(&mut self, text: &str) -> Result<Option<String>> {
        let mut interrupts = interrupts()?;
        prompt(text);
        tokio::select! {
            line = self.lines.recv() => Ok(line),
            _ = interrupts.recv() => Ok(None),
        }
    }

    /// Sends one message, and answers its confirmation requests.
    async fn turn(&mut self, text: &str) -> Result<()> {
        let mut events = self.conversation.say(text).await?;
        let outcome = self.show(&mut events).await?;
        self.settle(outcome).await
    }

    /// Asks until no confirmation request is pending.
    async fn settle(&mut self, mut outcome: RunOutcome) -> Result<()> {
        loop {
            let RunOutcome::Questions(questions) = outcome else { return Ok(()) };
            outcome = RunOutcome::Over;
            for question in questions {
                let Some(approved) = self.ask(&question).await? else {
                    let id = &question.confirmation_id;
                    output::help(format_args!(
                        "answer it with `toolwright approve {id}` or `toolwright reject {id}`"
                    ));
                    return Ok(());
                };
                let mut events = self.conversation.answer(&question, approved).await?;
                outcome = self.show(&mut events).await?;
            }
        }
    }

    /// Asks on the terminal. `None` without a terminal.
    async fn ask(&mut self, question: &ConfirmationPrompt) -> Result<Option<bool>> {
        output::message(format_args!("\x1b[1;33mapprove?\x1b[0m {}", escape(&question.preview)));
        if !std::io::stdin().is_terminal() {
            return Ok(None);
        }
        loop {
            let Some(line) = self.read_line("y/n ").await? else { return Ok(None) };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Some(true)),
                "n" | "no" => return Ok(Some(false)),
                _ => {}
            }
        }
    }

    /// Prints the events of a turn until it ends or pauses. Ctrl-C stops the turn.
    async fn show(&mut self, events: &mut ChatEvents) -> Result<RunOutcome> {
        let mut interrupts = interrupts()?;
        let mut printer = Printer::new(self.format);
        let mut outcome = None;
        loop {
            let event = tokio::select! {
                event = events.next() => event?,
                _ = interrupts.recv() => {
                    self.conversation.stop().await?;
                    continue;
                }
            };
            let Some(event) = event else { break };
            if let EventBody::TurnEnded { outcome: ended } = &event.event {
                outcome = Some(ended.clone());
            }
            printer.print(&event)?;
        }
        printer.end_line();
        match outcome {
            Some(TurnOutcome::AwaitsApproval) => return Ok(RunOutcome::Questions(printer.questions)),
            Some(TurnOutcome::Failed { error }) => {
                self.is_ok = false;
                output::error(escape_lines(&error.message));
            }
            Some(TurnOutcome::Stopped) => output::message("stopped"),
            Some(TurnOutcome::StepLimit { max_steps }) => {
                output::warning(format_args!("stopped after {max_steps} steps (`[agent] max_steps`)"));
            }
            Some(_) => {}
            None => {
                self.is_ok = false;
                output::error("the turn was interrupted");
                output::help("go on with `toolwright chat --continue`");
            }
        }
        Ok(RunOutcome::Over)
    }
}

/// Prints events for people, or as lines of JSON.
struct Printer {
    format: Format,
    /// The cursor is not at the begin of a line of stdout.
    is_in_line: bool,
    /// The arguments of the calls, by id.
    inputs: HashMap<String, Value>,
    questions: Vec<ConfirmationPrompt>,
}

impl Printer {
    fn new(format: Format) -> Self {
        Self { format, is_in_line: false, inputs: HashMap::new(), questions: Vec::new() }
    }

    fn print(&mut self, event: &ChatEvent) -> Result<()> {
        match &event.event {
            EventBody::ToolCalled { call, .. } => {
                self.inputs.insert(call.id.clone(), call.args.clone());
            }
            EventBody::ApprovalRequested { approval } => {
                let input = self.inputs.get(&approval.call_id).cloned().unwrap_or_default();
                self.questions.push(ConfirmationPrompt::new(approval, input));
            }
            _ => {}
        }
        if self.format == Format::Json {
            return output::print_json(event);
        }
        match &event.event {
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

/// Each Ctrl-C from now on.
fn interrupts() -> Result<Signal> {
    Ok(signal(SignalKind::interrupt())?)
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

//! `toolwright voice`: sends a recording to the voice agent of a server, and writes the answer into a WAV file. The
//! transcript goes to stdout, everything else to stderr.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use tokio::sync::mpsc;
use toolwright_contract::escape::{escape, escape_lines};

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::voice::{Confirm, Event, Outcome, Recording, Script, Target, converse};
use crate::{store, toolset};

/// Say a recording to the voice agent of a running server, and record its answer
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright voice --wav question.wav --out answer.wav     through the server that uses the project's store
  toolwright voice --wav book.wav --confirm yes            approve what the agent asks
  toolwright voice --wav hello.wav --url https://agent.example --key KEY
  toolwright voice --wav hello.wav --format json | jq .transcript")]
pub struct Voice {
    /// The recording to say: a WAV file with 8000, 16000, 24000 or 48000 samples a second
    #[arg(long, value_name = "FILE")]
    wav: PathBuf,
    /// The file to write the answer to, as WAV
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The server [default: the one that uses the project's store]
    #[arg(long, value_name = "URL", env = "TOOLWRIGHT_URL")]
    url: Option<String>,
    /// An API key or a token of the server
    #[arg(long, value_name = "KEY", env = "TOOLWRIGHT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// How confirmation requests are answered
    #[arg(long, value_enum, default_value_t = Confirm::Ask)]
    confirm: Confirm,
    /// Send the recording eight times as fast as it was recorded, and play the answer as fast
    #[arg(long)]
    fast: bool,
    /// Continue this voice session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The language of the conversation, such as de or pt-BR
    #[arg(long, value_name = "TAG")]
    language: Option<String>,
    /// How long the answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

pub fn run(config: &Config, args: &Voice) -> Result<ExitCode> {
    let recording = Recording::read(&args.wav)?;
    let tokio = toolset::async_runtime()?;
    let outcome = tokio.block_on(async {
        let target = find_target(config, args).await?;
        let is_human = config.format == Format::Human;
        let mut on_event = |event: &Event| print_event(event, is_human);
        let script = Script {
            recording: &recording,
            is_fast: args.fast,
            confirm: args.confirm,
            answers: read_answers(args.confirm),
            timeout: Duration::from_secs(args.timeout),
            session: args.session.clone(),
            language: args.language.clone(),
            on_event: &mut on_event,
        };
        converse(&target, script).await
    })?;
    // The thread that reads stdin may wait for ever.
    tokio.shutdown_background();
    if let Some(path) = &args.out {
        outcome.recording().write(path)?;
    }
    report(config.format, args, &outcome)
}

async fn find_target(config: &Config, args: &Voice) -> Result<Target, Failure> {
    if let Some(url) = &args.url {
        return Target::new(url, args.key.clone());
    }
    let file = store::find_server(&config.store).await.ok_or_else(|| {
        let message = format!("no server uses the store {}", crate::config::without_password(&config.store));
        Failure::new(message, "start `toolwright serve`, or name a server with --url")
    })?;
    let key = args.key.clone().unwrap_or_else(|| file.key().to_owned());
    Target::new(&file.url, Some(key))
}

fn report(format: Format, args: &Voice, outcome: &Outcome) -> Result<ExitCode> {
    if format == Format::Json {
        output::print_json(outcome)?;
    }
    if let (Some(path), Format::Human) = (&args.out, format) {
        let seconds = outcome.recording().seconds();
        output::success("wrote", format_args!("{} ({seconds:.1} s)", path.display()));
    }
    let is_over = outcome.answered || outcome.reason != "stopped";
    if !is_over {
        let message = format!("the agent did not answer within {} seconds", args.timeout);
        let help = "check that the recording contains speech; give it more time with --timeout";
        return Err(Failure::new(message, help).into());
    }
    Ok(ExitCode::SUCCESS)
}

fn print_event(event: &Event, is_human: bool) {
    match event {
        Event::Said(said) if is_human => {
            let cut = if said.interrupted { " —" } else { "" };
            let speaker = if said.role == "user" { "you" } else { "agent" };
            output::print_line(format_args!("{speaker}: {}{cut}", escape_lines(said.text.trim())));
        }
        Event::ToolStarted(tool) if is_human => {
            output::message(format_args!("\x1b[2m→ {}\x1b[0m", escape(tool)));
        }
        Event::ToolFinished(call) if is_human => {
            let sign = if call.ok { "\x1b[32m✓\x1b[0m" } else { "\x1b[31m✗\x1b[0m" };
            let error = call.error.as_deref().unwrap_or_default();
            output::message(format_args!("{sign} \x1b[2m{} {}\x1b[0m", escape(&call.tool), escape(error)));
        }
        Event::Question(question) => {
            output::message(format_args!("\x1b[1;33mapprove?\x1b[0m {}", escape(&question.preview)));
            if std::io::stdin().is_terminal() {
                output::message("y/n");
            }
        }
        Event::Message(message) if is_human => {
            let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
            output::message(format_args!("message: {}", escape_lines(&text)));
        }
        Event::Warning(text) => output::warning(escape_lines(text)),
        _ => {}
    }
}

/// `y` and `n` from the terminal, read by a thread of their own.
fn read_answers(confirm: Confirm) -> mpsc::Receiver<bool> {
    let (sender, answers) = mpsc::channel(1);
    if confirm == Confirm::Ask && std::io::stdin().is_terminal() {
        std::thread::spawn(move || {
            for line in std::io::stdin().lines().map_while(Result::ok) {
                let is_open = match line.trim().to_lowercase().as_str() {
                    "y" | "yes" => sender.blocking_send(true).is_ok(),
                    "n" | "no" => sender.blocking_send(false).is_ok(),
                    _ => true,
                };
                if !is_open {
                    return;
                }
            }
        });
    }
    answers
}

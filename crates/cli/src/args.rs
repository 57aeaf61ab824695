//! The command line: global options, and the list of subcommands. Their own options are in `command/`.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use toolwright_contract::{Category, Mode};

use crate::command::{
    audit, build, calendar, call, chat, check, confirm, describe, explain, init, kb, keys, list, mcp, new,
    prompt, schema, serve, sessions, tasks, test, toolsets, unblock, voice,
};
use crate::output;

/// Author LLM tools once; run them for any model, in voice and in text
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  toolwright init my-agent          create a project
  toolwright new weather-lookup     add a tool to it
  toolwright build                  compile tools/ into tools/tool_registry.json
  toolwright build --watch          and again whenever a file changes
  toolwright check --format json    report problems, for programs
  toolwright call validate_email '{\"email\": \"mira@studio.example\"}'
  toolwright test                   run the tools' tests
  toolwright prompt --mode voice    print the system prompt of a voice session
  toolwright schema --provider anthropic    print the tools as its API declares them
  toolwright chat                   talk to an agent that uses the tools
  toolwright voice --wav hello.wav  say a recording to the voice agent of a server
  toolwright serve                  serve the tools and the agent over HTTP
  toolwright mcp                    serve the tools to an MCP host, over stdin and stdout";

/// The options of every subcommand.
#[derive(Debug, Clone, ClapArgs)]
pub struct Common {
    /// The directory that contains the tool directories [default: tools]
    #[arg(help_heading = "Project", long, global = true, value_name = "DIR", env = "TOOLWRIGHT_TOOLS")]
    pub tools: Option<PathBuf>,
    /// The configuration file [default: toolwright.toml, in this directory or above]
    #[arg(help_heading = "Project", long, global = true, value_name = "FILE", env = "TOOLWRIGHT_CONFIG")]
    pub config: Option<PathBuf>,
    /// The store of sessions and audit: sqlite:PATH, postgres://…, memory: [default: sqlite:.toolwright/state.db]
    #[arg(
        help_heading = "Storage",
        long,
        global = true,
        value_name = "URL",
        env = "TOOLWRIGHT_STORE",
        hide_env_values = true
    )]
    pub store: Option<String>,
    /// The knowledge base: dir:PATH or postgres://… [default: dir:.toolwright/kb]
    #[arg(
        help_heading = "Storage",
        long,
        global = true,
        value_name = "URL",
        env = "TOOLWRIGHT_KB",
        hide_env_values = true
    )]
    pub kb: Option<String>,
    /// The format of the output: for people or for programs
    #[arg(help_heading = "Output", long, global = true, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Build(build::Build),
    Check(check::Check),
    Explain(explain::Explain),
    New(new::New),
    Init(init::Init),
    List(list::List),
    Describe(describe::Describe),
    Call(call::Call),
    Confirmations(confirm::Confirmations),
    Approve(confirm::Approve),
    Reject(confirm::Reject),
    Unblock(unblock::Unblock),
    Test(test::Test),
    /// Fill, search and maintain the knowledge base
    #[command(subcommand, after_help = kb::EXAMPLES)]
    Kb(kb::KbCommand),
    /// Show and verify the audit log of all calls
    #[command(subcommand, after_help = audit::EXAMPLES)]
    Audit(audit::Audit),
    /// List, show and end sessions
    #[command(subcommand, after_help = sessions::EXAMPLES)]
    Sessions(sessions::Sessions),
    /// List, show and cancel the calls that run in the background
    #[command(subcommand, after_help = tasks::EXAMPLES)]
    Tasks(tasks::Tasks),
    /// List the toolsets that the store keeps for sessions, and delete unused ones
    #[command(subcommand, after_help = toolsets::EXAMPLES)]
    Toolsets(toolsets::Toolsets),
    /// Show the booked events
    #[command(subcommand, after_help = calendar::EXAMPLES)]
    Calendar(calendar::CalendarCommand),
    Serve(Box<serve::Serve>),
    Chat(chat::Chat),
    Voice(voice::Voice),
    Mcp(mcp::Mcp),
    Keys(keys::Keys),
    /// Check your setup and suggest fixes; exits with 1 if something is broken
    #[command(after_help = "Examples:
  toolwright doctor
  toolwright doctor --format json | jq '.checks[] | select(.status != \"ok\")'")]
    Doctor,
    Prompt(prompt::Prompt),
    Schema(schema::Schema),
}

/// Options that have no effect on a command: its help does not show them. They are accepted everywhere, so that a
/// script can set them once.
const WITHOUT_EFFECT: &[(&str, &[&str])] = &[
    ("build", &["store", "kb"]),
    ("check", &["store", "kb"]),
    ("explain", &["tools", "config", "store", "kb", "format"]),
    ("new", &["store", "kb", "format"]),
    ("init", &["tools", "config", "store", "kb", "format"]),
    ("list", &["store", "kb"]),
    ("describe", &["store", "kb"]),
    ("confirmations", &["tools", "kb"]),
    ("reject", &["tools", "kb"]),
    ("unblock", &["tools", "kb"]),
    ("test", &["store", "kb"]),
    ("kb", &["tools", "store"]),
    ("audit", &["tools", "kb"]),
    ("sessions", &["tools", "kb"]),
    ("tasks", &["tools", "kb"]),
    ("calendar", &["tools", "store", "kb"]),
    ("serve", &["format"]),
    ("mcp", &["format"]),
    ("keys", &["tools", "store", "kb"]),
    ("prompt", &["store", "kb"]),
    ("schema", &["store", "kb"]),
    ("voice", &["tools", "kb"]),
];

/// Reads the command line; ends the process after help and wrong usage.
pub fn parse() -> Args {
    let mut command = Args::command();
    let options: Vec<clap::Arg> = command.get_arguments().cloned().collect();
    for (name, hidden) in WITHOUT_EFFECT {
        // An option of the subcommand itself takes the place of the global one.
        let hidden = options.iter().filter(|option| hidden.contains(&option.get_id().as_str()));
        let hidden = hidden.map(|option| option.clone().hide(true));
        command = command.mut_subcommand(*name, |subcommand| subcommand.args(hidden));
    }
    let matches = command.try_get_matches().unwrap_or_else(|error| {
        // Nothing can be done about a closed stream.
        let _ = error.print();
        if let Some(name) = variable_of(&error) {
            output::message(format_args!("  this value is that of the environment variable {name}"));
        }
        std::process::exit(error.exit_code())
    });
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The subcommand of this process, such as `chat`.
pub fn subcommand() -> Option<String> {
    let command = Args::command();
    // Not `args`, which panics at an argument that is not Unicode.
    let words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    words.into_iter().find(|word| command.find_subcommand(word).is_some())
}

/// The environment variable that has the value which was refused, if the command line does not have that value.
pub fn variable_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return None };
    if value.is_empty()
        || std::env::args_os().any(|argument| argument.to_string_lossy().contains(value.as_str()))
    {
        return None;
    }
    let is_ours = |name: &str| name.starts_with("TOOLWRIGHT_") || name.starts_with("OTEL_");
    // Not `vars`, which panics at a variable that is not Unicode.
    let variables = std::env::vars_os().filter_map(|(name, found)| Some((name.into_string().ok()?, found)));
    let named = variables.filter(|(name, found)| is_ours(name) && found == value.as_str());
    let mut names: Vec<String> = named.map(|(name, _)| name).collect();
    // Several variables may have the value: that of the option ends as the option does.
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return names.pop() };
    let option = option.split(' ').next().unwrap_or_default();
    let ending = option.trim_start_matches('-').replace('-', "_").to_uppercase();
    names.sort_by_key(|name| name.ends_with(&ending));
    names.pop()
}

/// The artifact to read, instead of the tools directory.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Source {
    /// Read this artifact instead of the tools directory
    #[arg(long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,
}

pub fn parse_category(word: &str) -> Result<Category, String> {
    Category::from_word(word).ok_or_else(|| one_of(Category::WORDS))
}

pub fn parse_mode(word: &str) -> Result<Mode, String> {
    Mode::from_word(word).ok_or_else(|| one_of(Mode::WORDS))
}

fn one_of(words: &[&str]) -> String {
    format!("one of {}", toolwright_contract::suggest::list(words))
}

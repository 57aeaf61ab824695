//! The command line: every flag, in one place.

mod calendar;
mod kb;
mod mcp;
mod serve;
mod unblock;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use toolwright_contract::{Category, Mode};
use toolwright_providers::Provider;

pub use calendar::{Calendar, During};
pub use kb::{Kb, KbAdd, KbModel, KbSearch};
pub use mcp::{Mcp, McpCommand, Pin};
pub use serve::ServeSettings;
pub use unblock::Unblock;

/// Author LLM tools once; run them for any model, in voice and in text.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  toolwright init my-agent          start a project
  toolwright new weather-lookup     add a tool to it
  toolwright build                  compile tools/ into tools/tool_registry.json
  toolwright build --watch          and again whenever a file changes
  toolwright check --format json    only report, for programs
  toolwright call validate_email '{\"email\": \"mira@studio.example\"}'
  toolwright test                   run the tools' own tests
  toolwright prompt --mode voice    the system prompt that a voice session gets
  toolwright schema --provider anthropic    the tools as its API declares them
  toolwright serve                  the tools over HTTP
  toolwright mcp                    the tools for an MCP host, over stdin and stdout";

/// What every subcommand takes.
#[derive(Debug, Clone, ClapArgs)]
pub struct Common {
    /// The directory that holds the tool directories [default: tools]
    #[arg(long, global = true, value_name = "DIR", env = "TOOLWRIGHT_TOOLS")]
    pub tools: Option<PathBuf>,
    /// The configuration file [default: toolwright.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE", env = "TOOLWRIGHT_CONFIG")]
    pub config: Option<PathBuf>,
    /// Where sessions and the audit are kept: sqlite:PATH, postgres://…, memory: [default: sqlite:.toolwright/state.db]
    #[arg(long, global = true, value_name = "URL", env = "TOOLWRIGHT_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// The knowledge base: dir:PATH [default: dir:.toolwright/kb]
    #[arg(long, global = true, value_name = "URL", env = "TOOLWRIGHT_KB", hide_env_values = true)]
    pub kb: Option<String>,
    /// For people or for programs
    #[arg(long, global = true, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// For whom the output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Human,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compile the tools directory into one validated, versioned artifact
    #[command(after_help = "Examples:
  toolwright build
  toolwright build my-tools --out dist/tool_registry.json
  SOURCE_DATE_EPOCH=0 toolwright build      the same bytes every time")]
    Build(Build),
    /// Check the tools as `build` does, and write nothing
    #[command(after_help = "Examples:
  toolwright check
  toolwright check --format json | jq '.diagnostics[].code'")]
    Check(Check),
    /// Say more about a diagnostic's code
    #[command(after_help = "Example:\n  toolwright explain schema-missing-type")]
    Explain {
        /// The code, as it stands in brackets after `error` or `warning`; without it, all codes
        code: Option<String>,
    },
    /// Add a tool directory that builds, ready to be edited
    #[command(after_help = "Examples:
  toolwright new weather-lookup --category retrieval
  toolwright new send-invoice --category action --mode text")]
    New(New),
    /// Start a project: tools, prompts, configuration
    #[command(after_help = "Example:\n  toolwright init my-agent && cd my-agent && toolwright build")]
    Init {
        /// The directory to create; an existing one must be empty
        dir: PathBuf,
    },
    /// List the tools
    #[command(after_help = "Examples:
  toolwright list
  toolwright list --category retrieval --format json")]
    List(List),
    /// Show all about one tool
    #[command(after_help = "Example:\n  toolwright describe kb_search")]
    Describe {
        /// The tool's id, or its directory's name
        tool: String,
        #[command(flatten)]
        source: Source,
    },
    /// Call a tool and print the envelope; exits 1 if the call fails
    #[command(after_help = "Examples:
  toolwright call validate_email '{\"email\": \"mira@studio.example\"}'
  echo '{\"query\": \"opening hours\"}' | toolwright call kb_search --mode voice
  toolwright call ignore_user @args.json --session-state '{\"warned\": true}' --format json")]
    Call(Call),
    /// List the calls that wait for a person's approval
    #[command(after_help = "Examples:
  toolwright confirmations
  toolwright confirmations --session s1 --format json")]
    Confirmations(Confirmations),
    /// Approve a call that waits: it runs once, and its envelope is printed; exits 1 if it fails
    #[command(after_help = "Examples:
  toolwright approve conf_3f9c…
  toolwright approve conf_3f9c… --args '{\"amount\": 20}'     with other arguments, which are checked again")]
    Approve(Approve),
    /// Decline a call that waits
    #[command(after_help = "Example:\n  toolwright deny conf_3f9c… --reason 'too dear'")]
    Deny(Deny),
    /// Let a client in again that a tool has shut out
    #[command(after_help = "Example:\n  toolwright unblock website --client visitor-42")]
    Unblock(Unblock),
    /// Run the tools' own tests
    #[command(after_help = "Examples:
  toolwright test
  toolwright test --only kb_search
  toolwright test --format json | jq '.tests[] | select(.ok | not)'")]
    Test(Test),
    /// Fill, search and look after the knowledge base
    #[command(after_help = "Examples:
  toolwright kb add docs/ people.jsonl       Markdown, text and JSONL; again later: only what has changed
  toolwright kb search 'stage automation' --type project
  toolwright kb get person:mira_okafor
  toolwright kb stats --format json")]
    Kb {
        #[command(subcommand)]
        what: Kb,
    },
    /// Look at the record of all calls
    #[command(after_help = "Examples:
  toolwright audit tail
  toolwright audit verify
  toolwright audit verify --head 1f3a…           also notices a tail that was cut off
  toolwright audit export > audit.jsonl")]
    Audit {
        #[command(subcommand)]
        what: Audit,
    },
    /// Look at the events that were booked
    #[command(after_help = "Examples:
  toolwright calendar list
  toolwright calendar list --from 2026-03-02 --to 2026-03-09 --format json
  toolwright calendar export > events.ics        for other programs: import the file there")]
    Calendar {
        #[command(subcommand)]
        what: Calendar,
    },
    /// Serve the tools over HTTP
    #[command(after_help = "Examples:
  toolwright serve                             build tools/, listen on 127.0.0.1:7300
  toolwright serve --watch                     and take up changes as they are saved
  toolwright serve --artifact dist/tool_registry.json --listen 0.0.0.0:7300
  toolwright serve --dump-config               show the settings in force, and stop")]
    Serve(Box<Serve>),
    /// Serve the tools to an MCP host over stdin and stdout
    #[command(after_help = "Examples:
  toolwright mcp                               build tools/, speak MCP on stdin and stdout
  toolwright mcp --artifact dist/tool_registry.json
  toolwright mcp --store memory:               keep nothing when the host goes away")]
    Mcp(Mcp),
    /// Make, list and revoke the API keys of a server
    #[command(after_help = "Examples:
  toolwright keys create mira --org studio --role staff
  toolwright keys list
  toolwright keys revoke 1f3a5b7c9d11")]
    Keys {
        /// The file of keys [default: .toolwright/keys.json]
        #[arg(long, global = true, value_name = "FILE", env = "TOOLWRIGHT_KEYS")]
        keys: Option<PathBuf>,
        #[command(subcommand)]
        what: Keys,
    },
    /// Check all that a project needs, and say what mends what is missing; exits 1 if something is broken
    #[command(after_help = "Examples:
  toolwright doctor
  toolwright doctor --format json | jq '.checks[] | select(.status != \"ok\")'")]
    Doctor,
    /// Print the system prompt that a session gets
    #[command(after_help = "Example:\n  toolwright prompt --mode voice")]
    Prompt {
        /// The session's mode
        #[arg(long, value_parser = mode, value_name = "text|voice")]
        mode: Mode,
        #[command(flatten)]
        source: Source,
    },
    /// Print the tools as a provider's API declares them
    #[command(after_help = "Examples:
  toolwright schema --provider openai-chat
  toolwright schema --provider gemini-native --mode voice --format json
  toolwright schema --provider ollama --lossy      what this form cannot say")]
    Schema(Schema),
}

#[derive(Debug, ClapArgs)]
pub struct Schema {
    /// Whose form: openai-chat, openai-responses, openai-realtime, anthropic, ollama, gemini, gemini-native, mcp
    #[arg(long, value_parser = provider, value_name = "PROVIDER")]
    pub provider: &'static Provider,
    /// Only the tools that a session of this mode may use
    #[arg(long, value_parser = mode, value_name = "text|voice")]
    pub mode: Option<Mode>,
    /// Only these tools, by id
    #[arg(long, value_delimiter = ',', value_name = "TOOL,TOOL")]
    pub only: Option<Vec<String>>,
    /// Report what the form cannot say, instead of the tools
    #[arg(long)]
    pub lossy: bool,
    #[command(flatten)]
    pub source: Source,
}

#[derive(Debug, ClapArgs)]
pub struct Build {
    /// The tools directory
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Where the artifact goes [default: tool_registry.json beside the tools]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Build again whenever a file changes
    #[arg(long)]
    pub watch: bool,
    /// Say where the time went
    #[arg(long)]
    pub timings: bool,
    /// Read and check everything anew
    #[arg(long)]
    pub no_cache: bool,
    /// Also write the tools as each provider's API declares them, a file a provider
    #[arg(long, value_name = "DIR")]
    pub emit_views: Option<PathBuf>,
    /// Say nothing unless it fails
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub struct Check {
    /// The tools directory
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Say where the time went
    #[arg(long)]
    pub timings: bool,
}

#[derive(Debug, ClapArgs)]
pub struct New {
    /// The tool's name, in kebab-case
    #[arg(value_name = "TOOL-NAME")]
    pub name: String,
    /// What the tool is to the agent
    #[arg(long, value_parser = category, default_value = "utility", value_name = "retrieval|action|utility")]
    pub category: Category,
    /// Where it may be used; give it twice for both [default: both]
    #[arg(long, value_parser = mode, value_name = "text|voice")]
    pub mode: Vec<Mode>,
}

#[derive(Debug, ClapArgs)]
pub struct List {
    /// Only the tools of one category
    #[arg(long, value_parser = category, value_name = "retrieval|action|utility")]
    pub category: Option<Category>,
    /// Only the tools that a session of this mode may use
    #[arg(long, value_parser = mode, value_name = "text|voice")]
    pub mode: Option<Mode>,
    #[command(flatten)]
    pub source: Source,
}

#[derive(Debug, ClapArgs)]
pub struct Call {
    /// The tool's id, or its directory's name
    pub tool: String,
    /// The arguments: JSON, or @FILE, or - for stdin (also when left out and stdin is a pipe)
    #[arg(value_name = "JSON")]
    pub arguments: Option<String>,
    /// The session's mode
    #[arg(long, value_parser = mode, default_value = "text", value_name = "text|voice")]
    pub mode: Mode,
    /// What the handler sees as the session's state
    #[arg(long, value_name = "JSON")]
    pub session_state: Option<String>,
    /// Go on with this session, or begin one with this id; without it the call has a session of its own
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The id of the call in its session; the same id again is answered from the record
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Approve the call if it has to be confirmed
    #[arg(long)]
    pub yes: bool,
    /// Who calls [default: terminal]
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// The org of whoever calls
    #[arg(long, value_name = "ORG")]
    pub org: Option<String>,
    /// A role of whoever calls; give it again for more
    #[arg(long, value_name = "ROLE")]
    pub role: Vec<String>,
    #[command(flatten)]
    pub source: Source,
}

#[derive(Debug, ClapArgs)]
pub struct Confirmations {
    /// Only those of one session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub struct Approve {
    /// The question's id, or the token that came with it
    #[arg(value_name = "TOKEN|ID")]
    pub token: String,
    /// Run it with these arguments instead: JSON, or @FILE, or - for stdin
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    #[command(flatten)]
    pub source: Source,
}

#[derive(Debug, ClapArgs)]
pub struct Deny {
    /// The question's id, or the token that came with it
    #[arg(value_name = "TOKEN|ID")]
    pub token: String,
    /// Why; the model is told
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// The last entries
    Tail {
        /// How many
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: usize,
    },
    /// Check that no entry was changed, removed or moved; prints the head of each chain
    Verify {
        /// A head printed by an earlier run: it must still be there
        #[arg(long, value_name = "HASH")]
        head: Vec<String>,
    },
    /// All entries as JSON lines
    Export,
}

/// Every setting of `[server]`, as a flag and as an environment variable.
#[derive(Debug, ClapArgs)]
pub struct Serve {
    #[command(flatten)]
    pub source: Source,
    /// Build again whenever a tool changes; sessions that have begun keep theirs
    #[arg(long, conflicts_with = "artifact")]
    pub watch: bool,
    /// Print the settings in force as TOML, and stop
    #[arg(long)]
    pub dump_config: bool,
    #[command(flatten)]
    pub settings: ServeSettings,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Keys {
    /// Make a key. It is shown once
    Create {
        /// Whose key it is: the id of the principal
        name: String,
        /// The principal's org
        #[arg(long)]
        org: Option<String>,
        /// A role of the principal; give it once for each. `admin` may see the audit and every confirmation
        #[arg(long = "role", value_name = "ROLE")]
        roles: Vec<String>,
        /// Days until it expires [default: never]
        #[arg(long, value_name = "DAYS")]
        expires: Option<u32>,
    },
    /// All keys, without their secrets
    List,
    /// Let a key open nothing any more
    Revoke {
        /// The key's id, as `keys list` shows it
        id: String,
    },
}

#[derive(Debug, ClapArgs)]
pub struct Test {
    /// The tools directory
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Only the tests of one tool
    #[arg(long, value_name = "TOOL")]
    pub only: Option<String>,
}

/// Where a toolset is read from.
#[derive(Debug, ClapArgs)]
pub struct Source {
    /// Read this built artifact instead of the tools directory
    #[arg(long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,
}

fn category(word: &str) -> Result<Category, String> {
    Category::from_word(word).ok_or_else(|| one_of(Category::WORDS))
}

fn mode(word: &str) -> Result<Mode, String> {
    Mode::from_word(word).ok_or_else(|| one_of(Mode::WORDS))
}

fn provider(name: &str) -> Result<&'static Provider, toolwright_providers::UnknownProvider> {
    toolwright_providers::provider(name)
}

fn one_of(words: &[&str]) -> String {
    format!("one of {}", toolwright_contract::suggest::list(words))
}

//! `toolwright new`: creates a tool directory whose texts `check` reports as unfinished until they are written.

use anyhow::Result;
use clap::{Args, ValueEnum};
use toolwright_contract::{Category, Mode, SideEffects};
use toolwright_registry::source::is_kebab;

use super::editor;
use super::template::{Template, cannot_write, write_dir};
use crate::args::{parse_category, parse_mode};
use crate::config::Config;
use crate::output::{self, Failure};

/// The files of a new tool, and what an author writes into each.
const FILES: [(&str, &str); 5] = [
    ("schema.json", "parameters, side effects, confirmation"),
    ("doc_summary.md", "one or two lines that are part of every prompt"),
    ("doc.md", "when and how to call it; the examples are validated"),
    ("handler.js", "the code"),
    ("tests/works.json", "a call and its expected envelope"),
];

/// Create a tool directory, ready to be edited
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright new weather-lookup --category retrieval --with http
  toolwright new send-invoice --category action --with http --mode text
  toolwright new find-policy --category retrieval --with kb")]
pub struct New {
    /// The tool's name, in kebab-case
    #[arg(value_name = "TOOL-NAME")]
    name: String,
    /// The category: an action asks for confirmation, a retrieval only reads
    #[arg(long, value_parser = parse_category, default_value = "utility", value_name = "retrieval|action|utility")]
    category: Category,
    /// The capability that the handler uses, which selects its template
    #[arg(long, value_enum)]
    with: Option<HandlerUse>,
    /// An allowed mode; repeat it for both [default: both]
    #[arg(long, value_parser = parse_mode, value_name = "text|voice")]
    mode: Vec<Mode>,
}

/// The capability that a new handler uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HandlerUse {
    /// A service, by `context.http.fetch`
    Http,
    /// The knowledge base, by `context.kb.search`
    Kb,
    /// Another tool, by `context.callTool`
    #[value(name = "callTool", alias = "call-tool", alias = "calltool")]
    CallTool,
}

pub fn run(config: &Config, args: &New) -> Result<()> {
    let name = args.name.replace('_', "-");
    if !is_kebab(&name) {
        let message = format!("`{}` is not a valid name for a tool", args.name);
        let help = "use kebab-case: lower-case letters, digits and `-`, beginning with a letter, such as `weather-lookup`";
        return Err(Failure::usage(message, help).into());
    }
    let dir = config.tools.join(&name);
    if dir.symlink_metadata().is_ok() {
        let message = format!("{} already exists", dir.display());
        return Err(Failure::new(message, "choose another name").into());
    }
    std::fs::create_dir_all(&config.tools)
        .and_then(|()| write_dir(&dir, &tool_files(&name, args)))
        .map_err(|error| cannot_write(&dir, &error))?;
    output::success("created", dir.display());
    for (file, content) in FILES {
        output::message(format_args!("  edit {file:<17} {content}"));
    }
    editor::update(config)?;
    if args.with == Some(HandlerUse::Http) {
        let id = name.replace('-', "_");
        output::message(format_args!("allow the service's host in toolwright.toml:"));
        output::message(format_args!("  [tool.{id}.http]\n  allow = [\"api.example.com\"]"));
    }
    output::message("then run `toolwright check`: it names what is unfinished");
    Ok(())
}

/// The files of a new tool.
fn tool_files(name: &str, args: &New) -> Vec<Template> {
    let modes = if args.mode.is_empty() { Mode::ALL } else { args.mode.as_slice() };
    let modes: Vec<String> = modes.iter().map(|mode| format!("\"{mode}\"")).collect();
    let is_action = args.category == Category::Action;
    let parts = HandlerTemplate::new(args.with, is_action);
    let values = [
        ("TOOL_ID", name.replace('-', "_")),
        ("TITLE", name.replace('-', " ")),
        ("MODES", modes.join(", ")),
        ("CATEGORY", args.category.to_string()),
        ("SIDE_EFFECTS", side_effects(args).to_string()),
        ("IDEMPOTENT", (!is_action).to_string()),
        ("CONFIRMATION", if is_action { confirmation(parts.parameter) } else { "false".to_owned() }),
        ("PARAMETER", parts.parameter.to_owned()),
        ("FAILURES", parts.failures.to_owned()),
    ];
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let texts = [
        include_str!("../../templates/new/schema.json"),
        include_str!("../../templates/new/doc_summary.md"),
        include_str!("../../templates/new/doc.md"),
        parts.handler,
        parts.test,
    ];
    FILES.iter().zip(texts).map(|((file, _), text)| Template::new(*file, text, &values)).collect()
}

/// An action asks before it acts, and shows what it is about to do.
fn confirmation(parameter: &str) -> String {
    format!(
        "{{\n    \"when\": \"true\",\n    \"preview\": \"TODO(author): what will happen, such as: Send “{{{{{parameter}}}}}”\"\n  }}"
    )
}

fn side_effects(args: &New) -> SideEffects {
    match (args.category, args.with) {
        (Category::Action, _) => SideEffects::Writes,
        (Category::Utility, None) => SideEffects::None,
        _ => SideEffects::ReadOnly,
    }
}

/// The parts of a tool that depend on what its handler uses.
struct HandlerTemplate {
    handler: &'static str,
    test: &'static str,
    parameter: &'static str,
    /// Lines of the section Failure Modes.
    failures: &'static str,
}

impl HandlerTemplate {
    fn new(with: Option<HandlerUse>, is_action: bool) -> Self {
        match with {
            None => Self {
                handler: include_str!("../../templates/new/plain.js"),
                test: include_str!("../../templates/new/plain.json"),
                parameter: "input",
                failures: "",
            },
            Some(HandlerUse::Http) if is_action => Self {
                handler: include_str!("../../templates/new/http-action.js"),
                test: include_str!("../../templates/new/http-action.json"),
                parameter: "input",
                failures: "- **CONFIRMATION_REQUIRED**: the user has not approved it yet; nothing was done.\n\
                    - **TRANSIENT**: the service does not respond; try again later.\n\
                    - **PERMANENT**: the service refused the request.\n",
            },
            Some(HandlerUse::Http) => Self {
                handler: include_str!("../../templates/new/http.js"),
                test: include_str!("../../templates/new/http.json"),
                parameter: "query",
                failures: "- **TRANSIENT**: the service does not respond; try again later.\n\
                    - **PERMANENT**: the service refused the request.\n",
            },
            Some(HandlerUse::Kb) => Self {
                handler: include_str!("../../templates/new/kb.js"),
                test: include_str!("../../templates/new/kb.json"),
                parameter: "query",
                failures: "- **TRANSIENT**: the knowledge base does not respond; try again later.\n",
            },
            Some(HandlerUse::CallTool) => Self {
                handler: include_str!("../../templates/new/call-tool.js"),
                test: include_str!("../../templates/new/call-tool.json"),
                parameter: "input",
                failures: "- The failures of the tool that it calls.\n",
            },
        }
    }
}

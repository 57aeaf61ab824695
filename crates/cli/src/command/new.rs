//! `toolwright new`: creates a tool directory that builds.

use anyhow::Result;
use clap::Args;
use toolwright_contract::{Category, Mode};
use toolwright_registry::source::is_kebab;

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

/// The template texts of a category, in the order of [`FILES`].
macro_rules! texts {
    ($category:literal) => {
        [
            include_str!(concat!("../../templates/", $category, "/schema.json")),
            include_str!(concat!("../../templates/", $category, "/doc_summary.md")),
            include_str!(concat!("../../templates/", $category, "/doc.md")),
            include_str!(concat!("../../templates/", $category, "/handler.js")),
            include_str!(concat!("../../templates/", $category, "/tests/works.json")),
        ]
    };
}

/// Create a tool directory that builds, ready to be edited
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright new weather-lookup --category retrieval
  toolwright new send-invoice --category action --mode text")]
pub struct New {
    /// The tool's name, in kebab-case
    #[arg(value_name = "TOOL-NAME")]
    name: String,
    /// The category, which selects the template
    #[arg(long, value_parser = parse_category, default_value = "utility", value_name = "retrieval|action|utility")]
    category: Category,
    /// An allowed mode; repeat it for both [default: both]
    #[arg(long, value_parser = parse_mode, value_name = "text|voice")]
    mode: Vec<Mode>,
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
    let modes = if args.mode.is_empty() { Mode::ALL } else { args.mode.as_slice() };
    std::fs::create_dir_all(&config.tools)
        .and_then(|()| write_dir(&dir, &tool_files("", &name, args.category, modes)))
        .map_err(|error| cannot_write(&dir, &error))?;
    output::success("created", dir.display());
    for (file, content) in FILES {
        output::message(format_args!("  edit {file:<17} {content}"));
    }
    output::message("then run `toolwright build`");
    Ok(())
}

/// The files of a new tool, below `prefix`.
pub fn tool_files(prefix: &str, name: &str, category: Category, modes: &[Mode]) -> Vec<Template> {
    let tool_id = name.replace('-', "_");
    let modes: Vec<String> = modes.iter().map(|mode| format!("\"{mode}\"")).collect();
    let (modes, title) = (modes.join(", "), name.replace('-', " "));
    let values = [("TOOL_ID", tool_id.as_str()), ("NAME", name), ("TITLE", &title), ("MODES", &modes)];
    let texts: [&str; 5] = match category {
        Category::Retrieval => texts!("retrieval"),
        Category::Action => texts!("action"),
        Category::Utility => texts!("utility"),
    };
    let to_template =
        |((name, _), text): ((&str, &str), &str)| Template::new(format!("{prefix}{name}"), text, &values);
    FILES.into_iter().zip(texts).map(to_template).collect()
}

//! `toolwright schema`: prints the tools as a provider's API declares them, or what that form cannot express.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use toolwright_contract::{Mode, ToolSpec};
use toolwright_providers::{Loss, Provider, View, provider};
use toolwright_registry::toolset::Toolset;

use crate::args::{Format, Source, parse_mode};
use crate::config::Config;
use crate::viewer::{ToolSelection, Viewer};
use crate::{output, report, toolset};

/// Print the tools as a provider's API declares them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright schema --provider openai-chat
  toolwright schema --provider gemini-native --mode voice --format json
  toolwright schema --provider ollama --lossy      what this form cannot express
  toolwright schema --provider anthropic --role staff      what such a session may use")]
pub struct Schema {
    /// openai-chat, openai-responses, openai-realtime, anthropic, ollama, gemini, gemini-native or mcp
    #[arg(long, value_parser = provider, value_name = "PROVIDER")]
    provider: &'static Provider,
    /// Only tools that are allowed in this mode
    #[arg(long, value_parser = parse_mode, value_name = "text|voice")]
    mode: Option<Mode>,
    /// Only these tools, by id
    #[arg(long, value_delimiter = ',', value_name = "TOOL,TOOL")]
    only: Option<Vec<String>>,
    /// Report what the provider's form cannot express, instead of the tools
    #[arg(long)]
    lossy: bool,
    #[command(flatten)]
    viewer: Viewer,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &Schema) -> Result<()> {
    let tools = Arc::new(toolset::load(&args.source, config)?);
    let visible = args.viewer.visible(&tools, args.mode, config)?;
    let specs = select_tools(&tools, args, &visible)?;
    let view = args.provider.view(specs.iter().copied());
    print_warnings(args, &view, specs.len());
    match (args.lossy, config.format) {
        (true, Format::Json) => output::print_json(&view.losses)?,
        (true, Format::Human) if view.losses.is_empty() => {
            output::message(format_args!("no losses: {} can express everything", args.provider.title));
        }
        (true, Format::Human) => view.losses.iter().for_each(|loss| output::print_line(to_line(loss))),
        (false, Format::Json) => output::print_json(&view.declarations)?,
        (false, Format::Human) => output::print_json_pretty(&view.declarations)?,
    }
    Ok(())
}

/// The requested tools, in the toolset's order.
fn select_tools<'t>(tools: &'t Toolset, args: &Schema, visible: &ToolSelection) -> Result<Vec<&'t ToolSpec>> {
    let to_ids =
        |names: &Vec<String>| names.iter().map(|name| toolset::tool_id(tools, name.trim())).collect();
    let only: Option<Vec<String>> = args.only.as_ref().map(to_ids);
    let all: Vec<&ToolSpec> = tools.for_models(|_| true).map(|tool| &tool.spec).collect();
    let is_known = |name: &String| all.iter().any(|spec| spec.tool_id == *name);
    if let Some(unknown) = only.iter().flatten().find(|name| !is_known(name)) {
        return Err(toolset::unknown_tool(tools, unknown).into());
    }
    let is_wanted = |spec: &&ToolSpec| {
        only.as_ref().is_none_or(|only| only.contains(&spec.tool_id))
            && args.mode.is_none_or(|mode| spec.allowed_modes.contains(&mode))
            && visible.has(spec)
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

fn print_warnings(args: &Schema, view: &View, tools: usize) {
    if let Some(max) = args.provider.max_tools.filter(|max| tools > *max) {
        let title = args.provider.title;
        output::warning(format_args!(
            "{title} accepts at most {max} tools in a request, and these are {tools}"
        ));
        output::help("select tools with `--only TOOL,TOOL`");
    }
    if !args.lossy && !view.losses.is_empty() {
        let losses = report::plural(view.losses.len(), "constraint");
        output::message(format_args!("note: this form cannot express {losses}; `--lossy` lists them"));
    }
}

fn to_line(loss: &Loss) -> String {
    let path = if loss.path.is_empty() { "/" } else { &loss.path };
    format!("\x1b[1m{}\x1b[0m {path} {}: {}, {}", loss.tool, loss.keyword, loss.kind, loss.note)
}

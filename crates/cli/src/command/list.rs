//! `toolwright list`: one line per tool.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_contract::{Category, Mode};
use toolwright_registry::toolset::Tool;

use crate::args::{Format, Source, parse_category, parse_mode};
use crate::config::Config;
use crate::viewer::Viewer;
use crate::{output, toolset};

/// List the tools
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright list
  toolwright list --category retrieval --format json
  toolwright list --mode voice --role staff      what such a session may use")]
pub struct List {
    /// Only tools of this category
    #[arg(long, value_parser = parse_category, value_name = "retrieval|action|utility")]
    category: Option<Category>,
    /// Only tools that are allowed in this mode
    #[arg(long, value_parser = parse_mode, value_name = "text|voice")]
    mode: Option<Mode>,
    #[command(flatten)]
    viewer: Viewer,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &List) -> Result<()> {
    let tools = Arc::new(toolset::load(&args.source, config)?);
    let visible = args.viewer.visible(&tools, args.mode, config)?;
    let is_wanted = |tool: &&Tool| {
        args.category.is_none_or(|category| tool.spec.category == category)
            && args.mode.is_none_or(|mode| tool.spec.allowed_modes.contains(&mode))
            && visible.has(&tool.spec)
    };
    let tools: Vec<&Tool> = tools.list().filter(is_wanted).collect();
    if config.format == Format::Json {
        return output::print_json_pretty(&tools.iter().map(|tool| to_json(tool)).collect::<Vec<_>>());
    }
    if tools.is_empty() {
        output::message("no tools");
        return Ok(());
    }
    let rows = tools.iter().map(|tool| {
        let spec = &tool.spec;
        let modes: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
        [
            spec.tool_id.clone(),
            spec.category.to_string(),
            spec.side_effects.to_string(),
            modes.join(","),
            spec.version.clone(),
            escape(&spec.description).into_owned(),
        ]
    });
    output::print_table(["TOOL", "CATEGORY", "EFFECTS", "MODES", "VERSION", "DESCRIPTION"], rows.collect());
    Ok(())
}

fn to_json(tool: &Tool) -> Value {
    let spec = &tool.spec;
    json!({
        "toolId": spec.tool_id,
        "version": spec.version,
        "category": spec.category,
        "sideEffects": spec.side_effects,
        "allowedModes": spec.allowed_modes,
        "requiresConfirmation": spec.requires_confirmation,
        "summary": tool.summary,
    })
}

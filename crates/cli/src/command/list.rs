//! `toolwright list`: the tools, a line each.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_registry::toolset::Tool;

use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::{output, toolset};

pub fn run(common: &Common, args: &args::List) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let tools = toolset::open(&args.source, &config)?;
    let wanted = |tool: &&Tool| {
        args.category.is_none_or(|category| tool.spec.category == category)
            && args.mode.is_none_or(|mode| tool.spec.allowed_modes.contains(&mode))
    };
    let tools: Vec<&Tool> = tools.list().filter(wanted).collect();
    match common.format {
        Format::Json => {
            let list: Vec<_> = tools.iter().map(|tool| row(tool)).collect();
            output::data_line(serde_json::to_string_pretty(&list)?);
        }
        Format::Human => {
            let width = tools.iter().map(|tool| tool.spec.tool_id.len()).max().unwrap_or(0);
            for tool in tools {
                let spec = &tool.spec;
                let modes: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
                output::data_line(format_args!(
                    "\x1b[1m{:width$}\x1b[0m  {:<9}  {:<9}  {:<10}  {:<8}  {}",
                    spec.tool_id,
                    spec.category.as_str(),
                    spec.side_effects.as_str(),
                    modes.join(","),
                    spec.version,
                    spec.description,
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(tool: &Tool) -> serde_json::Value {
    let spec = &tool.spec;
    serde_json::json!({
        "toolId": spec.tool_id,
        "version": spec.version,
        "category": spec.category,
        "sideEffects": spec.side_effects,
        "allowedModes": spec.allowed_modes,
        "requiresConfirmation": spec.requires_confirmation,
        "summary": tool.summary,
    })
}

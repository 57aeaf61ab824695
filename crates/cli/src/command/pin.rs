//! `toolwright mcp pin`: accepts what MCP servers say of their tools.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use toolwright_imports::{Change, Import};

use crate::args::{Common, Format, Pin};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::{report, toolset};

pub fn run(common: &Common, args: &Pin) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let mut imports = Imports::load(&config)?;
    let wanted: Vec<Import> = match &args.server {
        None => imports.servers.clone(),
        Some(name) => {
            imports.servers.iter().filter(|import| import.server().name == *name).cloned().collect()
        }
    };
    if wanted.is_empty() {
        let message = match &args.server {
            Some(name) => format!("there is no `[[mcp_servers]]` with the name `{name}`"),
            None => "the configuration has no `[[mcp_servers]]`".to_owned(),
        };
        return Err(Failure::new(message, "docs/imports.md shows how a server is declared").into());
    }
    let tokio = toolset::tokio()?;
    let mut reports = Vec::new();
    for import in wanted {
        let name = &import.server().name;
        let present = tokio.block_on(import.definitions()).map_err(|error| {
            Failure::new(
                format!("the MCP server `{name}` cannot be asked: {error}"),
                "mend its settings, or start it",
            )
        })?;
        let changes = imports.pins.compare(name, &present);
        if common.format == Format::Human {
            show(name, present.len(), &changes, args.dry_run);
        }
        reports.push(json!({ "server": name, "tools": present.len(), "changes": changes.iter().map(told).collect::<Value>() }));
        if !args.dry_run {
            imports.pins.accept(name, present);
        }
    }
    if !args.dry_run {
        imports.pins.save(&imports.file).map_err(|error| Failure::new(&error, error.help()))?;
    }
    if common.format == Format::Json {
        let pinned = json!({ "ok": true, "dryRun": args.dry_run, "file": imports.file, "servers": reports });
        output::data_line(serde_json::to_string_pretty(&pinned)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(server: &str, count: usize, changes: &[Change], is_trial: bool) {
    let tools = report::plural(count, "tool");
    let verb = if is_trial { "offers" } else { "pinned:" };
    output::data_line(format!("{server} {verb} {tools}, {} changed", changes.len()));
    for change in changes {
        output::data_line(match change {
            Change::New(tool) => format!("  + {tool}"),
            Change::Changed(tool, parts) => format!("  ~ {tool} ({})", parts.join(", ")),
            Change::Gone(tool) => format!("  - {tool}"),
        });
    }
}

fn told(change: &Change) -> Value {
    match change {
        Change::New(tool) => json!({ "tool": tool, "change": "new" }),
        Change::Changed(tool, parts) => json!({ "tool": tool, "change": "changed", "parts": parts }),
        Change::Gone(tool) => json!({ "tool": tool, "change": "gone" }),
    }
}

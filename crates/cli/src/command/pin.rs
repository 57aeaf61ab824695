//! `toolwright mcp pin`: accepts what MCP servers say of their tools.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use toolwright_imports::{Change, Definition, Import, Pins};

use crate::args::{Common, Format, Pin};
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::{report, toolset};

/// Of a text that is shown.
const LONGEST: usize = 4000;

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
        return Err(
            Failure::new(message, "docs/reference/imported-tools.md shows how a server is declared").into()
        );
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
            show(name, &imports.pins, &present, &changes, args.dry_run);
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

/// What a person is about to accept: the words that a model will read, before and after.
fn show(
    server: &str,
    pins: &Pins,
    present: &BTreeMap<String, Definition>,
    changes: &[Change],
    is_trial: bool,
) {
    let tools = report::plural(present.len(), "tool");
    let verb = if is_trial { "offers" } else { "pinned:" };
    output::data_line(format!("{server} {verb} {tools}, {} changed", changes.len()));
    for change in changes {
        match change {
            Change::New(tool) => {
                output::data_line(format!("  + {tool}"));
                if let Some(definition) = present.get(tool) {
                    output::data_line(format!("      + {}", shown(&definition.description)));
                }
            }
            Change::Gone(tool) => output::data_line(format!("  - {tool}")),
            Change::Changed(tool, parts) => {
                output::data_line(format!("  ~ {tool} ({})", parts.join(", ")));
                let before = pins.of(server).find(|(name, _)| name == tool).map(|(_, pin)| &pin.definition);
                for (before, after) in before.zip(present.get(tool)).into_iter().flat_map(differences) {
                    output::data_line(format!("      - {before}\n      + {after}"));
                }
            }
        }
    }
}

/// The parts that differ, as texts of one line.
fn differences((before, after): (&Definition, &Definition)) -> Vec<(String, String)> {
    let texts = |definition: &Definition| {
        let value = serde_json::to_value(definition).unwrap_or_default();
        let text = |part: &&str| match &value[*part] {
            Value::String(text) => shown(text),
            Value::Null => String::new(),
            other => shown(&other.to_string()),
        };
        before.differences(after).iter().map(text).collect::<Vec<_>>()
    };
    texts(before).into_iter().zip(texts(after)).collect()
}

/// On one line, and with nothing hidden.
fn shown(text: &str) -> String {
    text.chars().take(LONGEST).flat_map(char::escape_debug).collect()
}

fn told(change: &Change) -> Value {
    match change {
        Change::New(tool) => json!({ "tool": tool, "change": "new" }),
        Change::Changed(tool, parts) => json!({ "tool": tool, "change": "changed", "parts": parts }),
        Change::Gone(tool) => json!({ "tool": tool, "change": "gone" }),
    }
}

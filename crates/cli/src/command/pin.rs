//! `toolwright mcp pin`: accepts the tool definitions of MCP servers.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolwright_imports::{Change, Definition, Import, Pins};

use crate::args::Format;
use crate::config::Config;
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::{report, toolset};

/// Longer texts are shortened.
const MAX_SHOWN_CHARS: usize = 4000;

/// Accept the tool definitions of the servers in `[[mcp_servers]]`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright mcp pin --dry-run           print what is new, changed or removed
  toolwright mcp pin github              accept the tools of one server")]
pub struct Pin {
    /// The name of one server [default: all servers]
    server: Option<String>,
    /// Print the changes, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(config: &Config, args: &Pin) -> Result<()> {
    let mut imports = Imports::load(config)?;
    let is_selected =
        |import: &&Import| args.server.as_ref().is_none_or(|name| import.server().name == *name);
    let selected: Vec<Import> = imports.servers.iter().filter(is_selected).cloned().collect();
    if selected.is_empty() {
        let message = match &args.server {
            Some(name) => format!("there is no `[[mcp_servers]]` with the name `{name}`"),
            None => "the configuration has no `[[mcp_servers]]`".to_owned(),
        };
        let help = "declare the server as in docs/how-to/import-mcp-servers.md";
        return Err(Failure::new(message, help).into());
    }
    let runtime = toolset::async_runtime()?;
    let mut reports = Vec::new();
    for import in selected {
        let name = &import.server().name;
        let present = runtime.block_on(import.definitions()).map_err(|error| {
            let message = format!("cannot read the tools of the MCP server `{name}`: {error}");
            Failure::new(message, format!("`[[mcp_servers]]` `{name}` in toolwright.toml has its settings"))
        })?;
        let changes = imports.pins.compare(name, &present);
        if config.format == Format::Human {
            print_changes(name, &imports.pins, &present, &changes, args.dry_run);
        }
        let rows: Value = changes.iter().map(to_json).collect();
        reports.push(json!({ "server": name, "tools": present.len(), "changes": rows }));
        if !args.dry_run {
            imports.pins.accept(name, present);
        }
    }
    if !args.dry_run {
        imports.pins.save(&imports.file).map_err(|error| Failure::new(&error, error.help()))?;
    }
    if config.format == Format::Json {
        let report = json!({ "ok": true, "dryRun": args.dry_run, "file": imports.file, "servers": reports });
        output::print_json_pretty(&report)?;
    }
    Ok(())
}

/// Prints the text that a model will read, before and after, for a person to accept.
fn print_changes(
    server: &str,
    pins: &Pins,
    present: &BTreeMap<String, Definition>,
    changes: &[Change],
    is_dry_run: bool,
) {
    let tools = report::plural(present.len(), "tool");
    let verb = if is_dry_run { "offers" } else { "pinned:" };
    output::print_line(format!("{server} {verb} {tools}{}", count_changes(changes)));
    for change in changes {
        match change {
            Change::New(tool) => {
                output::print_line(format!("  + {}", escape(tool)));
                if let Some(definition) = present.get(tool) {
                    output::print_line(format!("      + {}", escape(&definition.description)));
                }
            }
            Change::Gone(tool) => output::print_line(format!("  - {}", escape(tool))),
            Change::Changed(tool, parts) => {
                output::print_line(format!("  ~ {} ({})", escape(tool), parts.join(", ")));
                let before =
                    pins.of_server(server).find(|(name, _)| name == tool).map(|(_, pin)| &pin.definition);
                for (before, after) in before.zip(present.get(tool)).into_iter().flat_map(differences) {
                    output::print_line(format!("      - {before}\n      + {after}"));
                }
            }
        }
    }
}

/// How many tools are new, changed and gone, such as `, 2 new, 1 changed`.
fn count_changes(changes: &[Change]) -> String {
    let count = |is_kind: fn(&Change) -> bool| changes.iter().filter(|change| is_kind(change)).count();
    let counts = [
        (count(|change| matches!(change, Change::New(_))), "new"),
        (count(|change| matches!(change, Change::Changed(..))), "changed"),
        (count(|change| matches!(change, Change::Gone(_))), "gone"),
    ];
    if changes.is_empty() {
        return ", nothing has changed".to_owned();
    }
    counts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, kind)| format!(", {number} {kind}"))
        .collect()
}

/// The parts that differ, each on one line.
fn differences((before, after): (&Definition, &Definition)) -> Vec<(String, String)> {
    let texts = |definition: &Definition| {
        let value = serde_json::to_value(definition).unwrap_or_default();
        let text = |part: &&str| match &value[*part] {
            Value::String(text) => escape(text),
            Value::Null => String::new(),
            other => escape(&other.to_string()),
        };
        before.differences(after).iter().map(text).collect::<Vec<_>>()
    };
    texts(before).into_iter().zip(texts(after)).collect()
}

/// One line without invisible characters: those that `contract::escape` escapes, and those of no width.
fn escape(text: &str) -> String {
    let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    let mut line = String::with_capacity(shown.len());
    for character in toolwright_contract::escape::escape(&shown).chars() {
        if character.is_ascii() || character.is_alphanumeric() {
            line.push(character);
        } else {
            line.extend(character.escape_debug());
        }
    }
    line
}

fn to_json(change: &Change) -> Value {
    match change {
        Change::New(tool) => json!({ "tool": tool, "change": "new" }),
        Change::Changed(tool, parts) => json!({ "tool": tool, "change": "changed", "parts": parts }),
        Change::Gone(tool) => json!({ "tool": tool, "change": "gone" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_as_they_are_except_for_what_cannot_be_seen() {
        for (text, expected) in [
            ("don't say \"größer\" \\ 日本語 – ₂", "don't say \"größer\" \\ 日本語 – ₂"),
            ("one\ntwo\u{1b}[2J", "one\\ntwo\\u001b[2J"),
            ("a\u{202e}b", "a\\u202eb"),
            ("ig\u{200b}nore\u{e0041}", "ig\\u{200b}nore\\u{e0041}"),
        ] {
            assert_eq!(escape(text), expected);
        }
        assert_eq!(escape(&"x".repeat(MAX_SHOWN_CHARS + 1)).len(), MAX_SHOWN_CHARS);
    }
}

//! `toolwright toolsets`: lists the toolsets that the store keeps for sessions, and deletes unused ones.

use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolwright_orchestrator::store::{Backend, ToolsetInfo};

use crate::args::Format;
use crate::config::Config;
use crate::output;
use crate::read_only_store::ReadOnlyStore;
use crate::{report, store, toolset};

pub const EXAMPLES: &str =
    "A toolset is stored, with its handlers, before its first session, so that the session goes \
on with it after a restart
or on another server. Servers delete those that no session has used for a day.

Examples:
  toolwright toolsets list
  toolwright toolsets list --format json | jq '.[] | select(.sessions == 0)'
  toolwright toolsets prune                    those without a session that were not used for an hour
  toolwright toolsets prune --unused-for 0     all without a session; stop the servers first";

const MINUTE_MS: i64 = 60_000;
const HEADERS: [&str; 6] = ["TOOLSET", "TOOLS", "SIZE", "SESSIONS", "STORED", "LAST USED"];

#[derive(Debug, Subcommand)]
pub enum Toolsets {
    /// List the stored toolsets, the one that was used last first
    #[command(after_help = "Examples:\n  toolwright toolsets list\n  toolwright toolsets list --format json")]
    List,
    Prune(Prune),
}

/// Delete stored toolsets that no active session has
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright toolsets prune
  toolwright toolsets prune --unused-for 1440 --format json")]
pub struct Prune {
    /// Only those that no session has begun with for this many minutes. A running server may be about to begin sessions
    /// with one that was used less than 15 minutes ago
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    unused_for: u32,
}

pub fn run(config: &Config, command: &Toolsets) -> Result<()> {
    match command {
        Toolsets::List => list(config),
        Toolsets::Prune(args) => prune(config, args),
    }
}

fn list(config: &Config) -> Result<()> {
    let toolsets =
        toolset::async_runtime()?.block_on(async { ReadOnlyStore::open(config).await?.toolsets().await })?;
    match config.format {
        Format::Json => output::print_json_pretty(&toolsets.iter().map(to_json).collect::<Vec<_>>())?,
        Format::Human if toolsets.is_empty() => {
            output::message("no session has begun yet: no toolset is stored")
        }
        Format::Human => print_table(&toolsets),
    }
    Ok(())
}

fn prune(config: &Config, args: &Prune) -> Result<()> {
    let used_before = Utc::now().timestamp_millis() - i64::from(args.unused_for) * MINUTE_MS;
    let (deleted, remaining) = toolset::async_runtime()?.block_on(async {
        let help =
            "if that is `toolwright serve`: it deletes unused toolsets itself, a day after their last use";
        let store = store::open_with_help(config, help).await?;
        let deleted = store.delete_unused_toolsets(used_before).await?;
        let remaining = store.toolsets().await?.len();
        store.flush().await?;
        store.close().await;
        anyhow::Ok((deleted, remaining))
    })?;
    match config.format {
        Format::Json => output::print_json(&json!({ "deleted": deleted, "remaining": remaining }))?,
        Format::Human => {
            deleted.iter().for_each(output::print_line);
            let count = report::plural(deleted.len(), "toolset");
            output::success("deleted", format_args!("{count}; {remaining} in use or used lately"));
        }
    }
    Ok(())
}

fn print_table(toolsets: &[(ToolsetInfo, u64)]) {
    let rows: Vec<[String; 6]> = toolsets.iter().map(to_row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.chain([HEADERS[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let line = |cells: [&str; 6]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    output::print_line(format_args!("\x1b[1m{}\x1b[0m", line(HEADERS)));
    for row in &rows {
        output::print_line(line(std::array::from_fn(|column| row[column].as_str())));
    }
}

fn to_row((info, sessions): &(ToolsetInfo, u64)) -> [String; 6] {
    let size = format!("{} KiB", info.bytes.div_ceil(1024));
    let (stored, used) = (date(info.created_at), date(info.used_at));
    [info.id.clone(), info.tools.to_string(), size, sessions.to_string(), stored, used]
}

fn to_json((info, sessions): &(ToolsetInfo, u64)) -> Value {
    let ToolsetInfo { id, created_at, used_at, tools, bytes } = info;
    json!({ "toolset": id, "tools": tools, "bytes": bytes, "sessions": sessions, "createdAt": created_at,
        "usedAt": used_at })
}

fn date(at: i64) -> String {
    let at = DateTime::from_timestamp_millis(at).unwrap_or_default();
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

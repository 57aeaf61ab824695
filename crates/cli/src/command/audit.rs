//! `toolwright audit`: shows and verifies the audit log.

use std::collections::{BTreeMap, VecDeque};

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};
use toolwright_orchestrator::store::AuditRow;
use toolwright_orchestrator::store::chain::Verifier;

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::read_only_store::ReadOnlyStore;
use crate::toolset;

pub const EXAMPLES: &str = "Examples:
  toolwright audit tail
  toolwright audit verify
  toolwright audit verify --head 1f3a…           also detects a truncated log
  toolwright audit export > audit.jsonl";

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Print the last entries
    Tail {
        /// The number of entries
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: usize,
    },
    /// Detect edits, gaps and reordering; prints the last hash of each chain
    Verify {
        /// A hash printed by an earlier run, which must still be in the log; repeat it for more
        #[arg(long, value_name = "HASH")]
        head: Vec<String>,
    },
    /// Print all entries as JSON lines
    Export,
}

pub fn run(config: &Config, command: &Audit) -> Result<()> {
    toolset::async_runtime()?.block_on(async {
        let store = ReadOnlyStore::open(&config.store).await?;
        match command {
            Audit::Tail { lines } => tail(config, &store, *lines).await,
            Audit::Verify { head } => verify(config, &store, head).await,
            Audit::Export => store.for_each_audit_row(|row| output::print_json(&to_json(&row))).await,
        }
    })
}

async fn tail(config: &Config, store: &ReadOnlyStore, lines: usize) -> Result<()> {
    let mut last = VecDeque::new();
    let keep_last = |row| {
        last.push_back(row);
        if last.len() > lines {
            last.pop_front();
        }
        Ok(())
    };
    store.for_each_audit_row(keep_last).await?;
    for row in &last {
        match config.format {
            Format::Json => output::print_json(&to_json(row))?,
            Format::Human => output::print_line(to_line(row)),
        }
    }
    Ok(())
}

async fn verify(config: &Config, store: &ReadOnlyStore, heads: &[String]) -> Result<()> {
    let mut verifier = Verifier::default();
    let mut missing: Vec<&String> = heads.iter().collect();
    let mut broken = None;
    let check = |row: AuditRow| {
        missing.retain(|head| **head != row.hash);
        if broken.is_none() {
            broken = verifier.check(&row).err();
        }
        Ok(())
    };
    store.for_each_audit_row(check).await?;
    let problem = broken.map(|broken| broken.to_string()).or_else(|| {
        let head = missing.first()?;
        Some(format!("the entry with the hash {head} is missing: the end of the log was truncated"))
    });
    if let Some(problem) = problem {
        if config.format == Format::Json {
            output::print_line(json!({ "ok": false, "rows": verifier.rows, "problem": problem }));
        }
        let message = format!("the audit log was tampered with: {problem}");
        return Err(Failure::new(message, "restore it from a backup").into());
    }
    let heads: BTreeMap<&str, &str> = verifier.heads().collect();
    match config.format {
        Format::Json => output::print_line(json!({ "ok": true, "rows": verifier.rows, "heads": heads })),
        Format::Human => {
            output::success("ok:", format_args!("{} entries, none changed or missing", verifier.rows));
            heads.iter().for_each(|(chain, head)| output::print_line(format_args!("{chain} {head}")));
        }
    }
    Ok(())
}

/// A row with its entry as JSON, beside the text that was hashed.
fn to_json(row: &AuditRow) -> Value {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    json!({ "number": row.number, "chain": row.chain, "position": row.position, "previous": row.previous,
        "hash": row.hash, "entry": entry, "text": row.entry })
}

fn to_line(row: &AuditRow) -> String {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    let text = |name: &str| output::sanitize(entry[name].as_str().unwrap_or_default());
    let time = entry["at"].as_i64().and_then(chrono::DateTime::from_timestamp_millis);
    let time = time.map(|time| time.format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default();
    let colour = if text("outcome") == "ok" { "32" } else { "31" };
    format!(
        "{time}  {:<9}  \x1b[1m{:<24}\x1b[0m  \x1b[{colour}m{:<21}\x1b[0m  {:>5} ms  {}  {}",
        text("event"),
        text("tool"),
        text("outcome"),
        entry["durationMs"].as_u64().unwrap_or_default(),
        text("session"),
        text("executionId"),
    )
}

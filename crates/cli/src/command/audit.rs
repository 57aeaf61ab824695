//! `toolwright audit`: shows and verifies the audit log.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_orchestrator::store::AuditRow;
use toolwright_orchestrator::store::chain::{ChainError, Head, Verifier};

use super::audit_list;
use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::read_only_store::ReadOnlyStore;
use crate::toolset;

pub const EXAMPLES: &str = "Examples:
  toolwright audit tail
  toolwright audit list --approver ada --from 2026-11-19
  toolwright audit verify
  toolwright audit heads > heads.jsonl           save the ends of all chains elsewhere
  toolwright audit verify --heads heads.jsonl    also detect a truncated chain, or one that was deleted
  toolwright audit export > audit.jsonl";

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Print the last entries
    Tail {
        /// The number of entries
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: usize,
    },
    /// Print the entries that match, oldest first
    List(audit_list::Conditions),
    /// Verify the log, and print the end of each chain as JSON lines, to be saved elsewhere
    Heads,
    /// Detect edits, gaps, reordering and missing chains; prints the last hash of each chain
    Verify {
        /// A file with the output of an earlier `audit heads`: every row up to those heads must still be in the log
        #[arg(long, value_name = "FILE")]
        heads: Option<PathBuf>,
        /// A hash printed by an earlier run, which must still be in the log; repeat it for more
        #[arg(long, value_name = "HASH")]
        head: Vec<String>,
    },
    /// Print all entries as JSON lines
    Export,
}

pub fn run(config: &Config, command: &Audit) -> Result<()> {
    toolset::async_runtime()?.block_on(async {
        let store = ReadOnlyStore::open(config).await?;
        match command {
            Audit::Tail { lines } => tail(config, &store, *lines).await,
            Audit::List(conditions) => audit_list::run(config, &store, conditions).await,
            Audit::Heads => print_heads(config, &store).await,
            Audit::Verify { heads, head } => verify(config, &store, heads.as_deref(), head).await,
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
    if !last.is_empty() {
        print_header(config);
    }
    last.iter().try_for_each(|row| print_row(config, row))
}

/// The names of the columns, for people.
pub fn print_header(config: &Config) {
    if config.format == Format::Human {
        output::print_line(format_args!(
            "\x1b[1m{:<19}  {:<9}  {:<24}  {:<21}  {:>8}  {:<29}  {}\x1b[0m",
            "TIME", "EVENT", "TOOL", "OUTCOME", "DURATION", "SESSION", "EXECUTION"
        ));
    }
}

pub fn print_row(config: &Config, row: &AuditRow) -> Result<()> {
    match config.format {
        Format::Json => output::print_json(&to_json(row))?,
        Format::Human => output::print_line(to_line(row)),
    }
    Ok(())
}

async fn print_heads(config: &Config, store: &ReadOnlyStore) -> Result<()> {
    match check(store, Vec::new(), &[]).await? {
        Ok(verifier) => verifier.heads().try_for_each(|head| output::print_json(&json!(head))),
        Err(problem) => Err(tampered_error(config, &problem)),
    }
}

async fn verify(
    config: &Config,
    store: &ReadOnlyStore,
    heads: Option<&Path>,
    hashes: &[String],
) -> Result<()> {
    let saved = heads.map_or(Ok(Vec::new()), read_heads)?;
    let verifier = match check(store, saved, hashes).await? {
        Ok(verifier) => verifier,
        Err(problem) => return Err(tampered_error(config, &problem)),
    };
    let heads: BTreeMap<String, String> = verifier.heads().map(|head| (head.chain, head.hash)).collect();
    match config.format {
        Format::Json => output::print_line(json!({ "ok": true, "rows": verifier.rows, "heads": heads })),
        Format::Human => {
            output::success("ok:", format_args!("{} entries, none changed or missing", verifier.rows));
            heads.iter().for_each(|(chain, head)| output::print_line(format_args!("{chain} {head}")));
        }
    }
    Ok(())
}

/// A problem of the audit, and how many rows before it are in order.
struct Problem {
    rows: u64,
    message: String,
    /// A chain is not in the register.
    is_unregistered: bool,
}

/// Verifies the whole audit, and that it contains the saved heads and hashes.
async fn check(
    store: &ReadOnlyStore,
    saved: Vec<Head>,
    hashes: &[String],
) -> Result<Result<Verifier, Problem>> {
    match check_once(store, saved.clone(), hashes).await? {
        // A server may have begun its chain after the register was read.
        Err(Problem { is_unregistered: true, .. }) => check_once(store, saved, hashes).await,
        checked => Ok(checked),
    }
}

async fn check_once(
    store: &ReadOnlyStore,
    saved: Vec<Head>,
    hashes: &[String],
) -> Result<Result<Verifier, Problem>> {
    let register = store.register().await?;
    let mut missing: Vec<&String> = hashes.iter().collect();
    let mut verifier = match Verifier::new(register.as_deref(), saved) {
        Ok(verifier) => verifier,
        Err(broken) => {
            return Ok(Err(Problem { rows: 0, message: broken.to_string(), is_unregistered: false }));
        }
    };
    let mut broken: Option<ChainError> = None;
    let check_row = |row: AuditRow| {
        missing.retain(|hash| **hash != row.hash);
        if broken.is_none() {
            broken = verifier.check(&row).err();
        }
        Ok(())
    };
    store.for_each_audit_row(check_row).await?;
    let broken = broken.or_else(|| verifier.finish().err());
    let is_unregistered = matches!(broken, Some(ChainError::Unregistered { .. }));
    let problem = broken.map(|broken| broken.to_string()).or_else(|| {
        let hash = missing.first()?;
        Some(format!("the entry with the hash {hash} is missing: the end of the log was truncated"))
    });
    Ok(match problem {
        Some(message) => Err(Problem { rows: verifier.rows, message, is_unregistered }),
        None => Ok(verifier),
    })
}

fn tampered_error(config: &Config, Problem { rows, message, .. }: &Problem) -> anyhow::Error {
    if config.format == Format::Json {
        output::print_line(json!({ "ok": false, "rows": rows, "problem": message }));
    }
    let message = format!("the audit log was tampered with: {message}");
    Failure::new(message, "restore it from a backup").into()
}

/// Reads the output of `audit heads`.
fn read_heads(file: &Path) -> Result<Vec<Head>> {
    let help = "name a file that `toolwright audit heads` has written";
    let cannot = |cause: String| Failure::new(format!("cannot read {}: {cause}", file.display()), help);
    let text = fs::read_to_string(file).map_err(|error| cannot(error.to_string()))?;
    let mut heads = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let head = serde_json::from_str(line).map_err(|error| cannot(format!("line {number}: {error}")))?;
        heads.push(head);
    }
    if heads.is_empty() {
        return Err(cannot("it has no heads".to_owned()).into());
    }
    Ok(heads)
}

/// A row with its entry as JSON, beside the text that was hashed.
fn to_json(row: &AuditRow) -> Value {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    json!({ "number": row.number, "chain": row.chain, "position": row.position, "previous": row.previous,
        "hash": row.hash, "entry": entry, "text": row.entry })
}

fn to_line(row: &AuditRow) -> String {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    let text = |name: &str| escape(entry[name].as_str().unwrap_or_default()).into_owned();
    let time = entry["at"].as_i64().and_then(chrono::DateTime::from_timestamp_millis);
    let time = time.map(|time| time.format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default();
    let colour = if text("outcome") == "ok" { "32" } else { "31" };
    let approver = entry["approver"]["id"].as_str().map(|id| format!("  answered by {}", escape(id)));
    format!(
        "{time}  {:<9}  \x1b[1m{:<24}\x1b[0m  \x1b[{colour}m{:<21}\x1b[0m  {:>5} ms  {}  {}{}",
        text("event"),
        text("tool"),
        text("outcome"),
        entry["durationMs"].as_u64().unwrap_or_default(),
        text("session"),
        text("executionId"),
        approver.unwrap_or_default(),
    )
}

//! `toolwright audit`: the record of all calls, shown and verified.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};
use toolwright_orchestrator::store::AuditRow;
use toolwright_orchestrator::store::chain::Verifier;

use crate::args::{Audit, Common, Format};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::record::Record;
use crate::toolset;

pub fn run(common: &Common, what: &Audit) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    toolset::tokio()?.block_on(async {
        let record = Record::open(&config.store).await?;
        match what {
            Audit::Tail { lines } => tail(common, &record, *lines).await,
            Audit::Verify { head } => verify(common, &record, head).await,
            Audit::Export => export(&record).await,
        }
    })
}

async fn tail(common: &Common, record: &Record, lines: usize) -> Result<ExitCode> {
    let mut last = std::collections::VecDeque::new();
    record
        .each(|row| {
            last.push_back(row);
            if last.len() > lines {
                last.pop_front();
            }
            Ok(())
        })
        .await?;
    for row in &last {
        match common.format {
            Format::Json => output::data_line(serde_json::to_string(&whole(row))?),
            Format::Human => output::data_line(line(row)),
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn export(record: &Record) -> Result<ExitCode> {
    record
        .each(|row| {
            output::data_line(serde_json::to_string(&whole(&row))?);
            Ok(())
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}

async fn verify(common: &Common, record: &Record, heads: &[String]) -> Result<ExitCode> {
    let mut verifier = Verifier::default();
    let mut missing: Vec<&String> = heads.iter().collect();
    let mut broken = None;
    record
        .each(|row| {
            missing.retain(|head| **head != row.hash);
            if broken.is_none() {
                broken = verifier.check(&row).err();
            }
            Ok(())
        })
        .await?;
    let problem = broken.map(|broken| broken.to_string()).or_else(|| {
        let head = missing.first()?;
        Some(format!("the entry with the hash {head} is gone: the end of the record was cut off"))
    });
    if let Some(problem) = problem {
        if common.format == Format::Json {
            output::data_line(json!({ "ok": false, "rows": verifier.rows, "problem": problem }));
        }
        return Err(
            Failure::new(format!("the record is not whole: {problem}"), "restore it from a copy").into()
        );
    }
    let heads: serde_json::Map<String, Value> =
        verifier.heads().map(|(chain, head)| (chain.to_owned(), head.into())).collect();
    match common.format {
        Format::Json => output::data_line(json!({ "ok": true, "rows": verifier.rows, "heads": heads })),
        Format::Human => {
            output::message(format_args!(
                "\x1b[1;32mok\x1b[0m: {} entries, none changed or missing",
                verifier.rows
            ));
            for (chain, head) in &heads {
                output::data_line(format_args!("{chain} {}", head.as_str().unwrap_or_default()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A row with its entry as JSON beside the text that was hashed.
fn whole(row: &AuditRow) -> Value {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    json!({ "number": row.number, "chain": row.chain, "position": row.position, "previous": row.previous,
        "hash": row.hash, "entry": entry, "text": row.entry })
}

fn line(row: &AuditRow) -> String {
    let entry: Value = serde_json::from_str(&row.entry).unwrap_or(Value::Null);
    let text = |name: &str| output::plain(entry[name].as_str().unwrap_or_default());
    let at = entry["at"].as_i64().and_then(chrono::DateTime::from_timestamp_millis);
    let at = at.map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default();
    let colour = if text("outcome") == "ok" { "32" } else { "31" };
    format!(
        "{at}  {:<9}  \x1b[1m{:<24}\x1b[0m  \x1b[{colour}m{:<21}\x1b[0m  {:>5} ms  {}  {}",
        text("event"),
        text("tool"),
        text("outcome"),
        entry["durationMs"],
        text("session"),
        text("executionId"),
    )
}

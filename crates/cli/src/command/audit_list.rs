//! `toolwright audit list`: the entries of the audit log that match, oldest first.

use anyhow::Result;
use chrono::{DateTime, NaiveDate, NaiveTime};
use clap::Args;
use toolwright_contract::Principal;
use toolwright_orchestrator::store::{AuditEntry, AuditFilter};

use super::audit::{print_header, print_row};
use crate::config::Config;
use crate::read_only_store::ReadOnlyStore;

/// Which entries: every condition that is given must hold.
#[derive(Debug, Args)]
pub struct Conditions {
    /// The principal who made the call; with `--org` if it has one
    #[arg(long, value_name = "ID")]
    principal: Option<String>,
    /// The org of the principal
    #[arg(long)]
    org: Option<String>,
    /// The user's program
    #[arg(long, value_name = "ID")]
    client: Option<String>,
    /// The person who has answered the confirmation request
    #[arg(long, value_name = "ID")]
    approver: Option<String>,
    /// Only calls whose arguments the approver has changed
    #[arg(long)]
    edited: bool,
    #[arg(long)]
    tool: Option<String>,
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Entries from this time on: `2026-11-19`, `2026-11-19T08:30:00Z`, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<i64>,
    /// Entries before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<i64>,
}

impl Conditions {
    fn filter(&self) -> AuditFilter {
        let Self { principal, org, client, approver, edited, tool, session, from, until } = self;
        let key = |id: &String| Principal { id: id.clone(), org: org.clone(), roles: Vec::new() }.key();
        AuditFilter {
            principal: principal.as_ref().map(key),
            org: org.clone(),
            client: client.clone(),
            approver: approver.clone(),
            edited: *edited,
            tool: tool.clone(),
            session: session.clone(),
            from: *from,
            until: *until,
            ..AuditFilter::default()
        }
    }
}

fn parse_time(text: &str) -> Result<i64, String> {
    let day = || text.parse::<NaiveDate>().ok().map(|day| day.and_time(NaiveTime::MIN).and_utc());
    let moment = || DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    let time = text.parse().ok().or_else(|| day().or_else(moment).map(|time| time.timestamp_millis()));
    time.ok_or_else(|| {
        "use a day (2026-11-19), a time (2026-11-19T08:30:00Z), or milliseconds since 1970".to_owned()
    })
}

pub async fn run(config: &Config, store: &ReadOnlyStore, conditions: &Conditions) -> Result<()> {
    let filter = conditions.filter();
    let mut is_first = true;
    store
        .for_each_audit_row(|row| {
            // An entry that cannot be read is reported by `audit verify`.
            let matches =
                serde_json::from_str::<AuditEntry>(&row.entry).is_ok_and(|entry| filter.matches(&entry));
            if !matches {
                return Ok(());
            }
            if std::mem::take(&mut is_first) {
                print_header(config);
            }
            print_row(config, &row)
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_moments_or_milliseconds() {
        let noon = 1_795_089_600_000;
        for text in ["2026-11-19T12:00:00Z", "2026-11-19T14:00:00+02:00", "1795089600000"] {
            assert_eq!(parse_time(text), Ok(noon), "{text}");
        }
        assert_eq!(parse_time("2026-11-19"), Ok(noon - 12 * 60 * 60 * 1000));
        assert!(parse_time("yesterday").unwrap_err().contains("2026-11-19"));
    }
}

//! Parses and checks the arguments of the calendar functions. Unknown fields are errors.

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolwright_capabilities::{CapabilityError, Result};

use crate::local_time;
use crate::span::Span;

const MAX_ATTENDEES: usize = 100;
const MAX_WINDOW: Duration = Duration::days(366);
const MAX_MINUTES: u32 = 24 * 60;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FreeBusyArgs {
    pub attendees: Vec<String>,
    #[serde(deserialize_with = "instant")]
    pub start: DateTime<Utc>,
    #[serde(deserialize_with = "instant")]
    pub end: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProposeArgs {
    pub title: String,
    pub attendees: Vec<String>,
    pub duration_minutes: u32,
    #[serde(deserialize_with = "instants")]
    pub preferred_times: Vec<DateTime<Utc>>,
    #[serde(deserialize_with = "instant")]
    pub window_start: DateTime<Utc>,
    #[serde(deserialize_with = "instant")]
    pub window_end: DateTime<Utc>,
    pub timezone: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetDraftArgs {
    pub draft_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitArgs {
    pub draft_id: String,
    pub slot_index: usize,
    #[serde(default)]
    pub note: Option<String>,
    pub execution_id: String,
}

/// Parses the single argument of a function.
pub fn parse<T: for<'de> Deserialize<'de>>(args: Vec<Value>) -> Result<T> {
    let argument = args.into_iter().next().unwrap_or(Value::Null);
    serde_json::from_value(argument).map_err(|error| invalid(error.to_string()))
}

impl FreeBusyArgs {
    /// The window, after all checks.
    pub fn check(&self) -> Result<Span> {
        check_attendees(&self.attendees)?;
        window(self.start, self.end)
    }
}

impl ProposeArgs {
    /// The future part of the window, and the time zone, after all checks.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(Span, Tz)> {
        check_attendees(&self.attendees)?;
        if !(1..=MAX_MINUTES).contains(&self.duration_minutes) {
            return Err(invalid(format!("`durationMinutes` must be from 1 to {MAX_MINUTES}")));
        }
        let zone = local_time::parse_zone(&self.timezone).ok_or_else(|| {
            CapabilityError::new("INVALID_TIMEZONE", format!("`{}` is not an IANA time zone", self.timezone))
        })?;
        let window = window(self.window_start, self.window_end)?;
        Ok((Span { start: window.start.max(now), ..window }, zone))
    }
}

fn window(start: DateTime<Utc>, end: DateTime<Utc>) -> Result<Span> {
    if end <= start {
        return Err(invalid("the end of the window must be after its start"));
    }
    if end - start > MAX_WINDOW {
        return Err(invalid("the window must not be longer than a year"));
    }
    Ok(Span { start, end })
}

/// Addresses are written into iCalendar files, so they must be single words.
fn check_attendees(attendees: &[String]) -> Result<()> {
    if attendees.is_empty() || attendees.len() > MAX_ATTENDEES {
        return Err(invalid(format!("`attendees` must have from 1 to {MAX_ATTENDEES} addresses")));
    }
    let is_address = |text: &str| {
        let parts = text.rsplit_once('@');
        parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
            && !text.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"'))
    };
    match attendees.iter().find(|attendee| !is_address(attendee)) {
        Some(wrong) => Err(invalid(format!("`{wrong}` is not an e-mail address"))),
        None => Ok(()),
    }
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::invalid(message)
}

fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    parse_instant(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn instants<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DateTime<Utc>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| parse_instant(text)).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

/// Years outside this range are mistakes, and beyond the rules of the time zones.
fn parse_instant(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_| format!("`{text}` is not a time like 2026-03-02T09:00:00+01:00"))?;
    let year = chrono::Datelike::year(&time);
    if (1970..=2200).contains(&year) {
        Ok(time.to_utc())
    } else {
        Err(format!("the year {year} is not between 1970 and 2200"))
    }
}

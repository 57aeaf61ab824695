//! Parses and checks the arguments of the calendar functions. Unknown fields are errors.

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use serde::Deserialize;
use serde_json::Value;
use toolwright_capabilities::{CapabilityError, Result};

use crate::local_time;
use crate::span::Span;

const MAX_ATTENDEES: usize = 100;
const MAX_WINDOW: Duration = Duration::days(366);
const MAX_MINUTES: u32 = 24 * 60;

/// A time with an offset.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub struct Instant(pub DateTime<Utc>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FreeBusyArgs {
    pub attendees: Vec<String>,
    pub start: Instant,
    pub end: Instant,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProposeArgs {
    pub title: String,
    pub attendees: Vec<String>,
    pub duration_minutes: u32,
    pub preferred_times: Vec<Instant>,
    pub window_start: Instant,
    pub window_end: Instant,
    pub timezone: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetDraftArgs {
    pub draft_id: String,
}

#[derive(Debug, Clone, Deserialize)]
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
        window(self.start.0, self.end.0)
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
        let window = window(self.window_start.0, self.window_end.0)?;
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

impl TryFrom<String> for Instant {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let time = DateTime::parse_from_rfc3339(&text)
            .map_err(|_| format!("`{text}` is not a time like 2026-03-02T09:00:00+01:00"))?;
        let year = chrono::Datelike::year(&time);
        // Other years are mistakes, and beyond the rules of the time zones.
        if (1970..=2200).contains(&year) {
            Ok(Self(time.to_utc()))
        } else {
            Err(format!("the year {year} is not between 1970 and 2200"))
        }
    }
}

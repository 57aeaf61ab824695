//! What handlers ask for, read strictly: arguments that no back end could make sense of go no further.

use chrono::{DateTime, Duration, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toolwright_capabilities::Fault;

use crate::busy::Span;
use crate::zone;

const MOST_ATTENDEES: usize = 100;
const LONGEST: Duration = Duration::days(366);
const MOST_MINUTES: u32 = 24 * 60;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FreeBusy {
    pub attendees: Vec<String>,
    #[serde(deserialize_with = "instant")]
    pub start: DateTime<Utc>,
    #[serde(deserialize_with = "instant")]
    pub end: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Propose {
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
pub struct GetDraft {
    pub draft_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Commit {
    pub draft_id: String,
    pub slot_index: usize,
    #[serde(default)]
    pub note: Option<String>,
    pub execution_id: String,
}

/// The one argument of a function.
pub fn read<T: for<'de> Deserialize<'de>>(args: Vec<Value>) -> Result<T, Fault> {
    let argument = args.into_iter().next().unwrap_or(Value::Null);
    serde_json::from_value(argument).map_err(|error| invalid(error.to_string()))
}

impl FreeBusy {
    pub fn window(&self) -> Result<Span, Fault> {
        check_attendees(&self.attendees)?;
        window(self.start, self.end)
    }
}

impl Propose {
    /// The part of the window that is still to come, and the zone.
    pub fn check(&self, now: DateTime<Utc>) -> Result<(Span, Tz), Fault> {
        check_attendees(&self.attendees)?;
        if !(1..=MOST_MINUTES).contains(&self.duration_minutes) {
            return Err(invalid(format!("an event lasts from 1 to {MOST_MINUTES} minutes")));
        }
        let zone = zone::named(&self.timezone).ok_or_else(|| {
            Fault::new("INVALID_TIMEZONE", format!("there is no time zone `{}`", self.timezone))
        })?;
        let window = window(self.window_start, self.window_end)?;
        Ok((Span { start: window.start.max(now), ..window }, zone))
    }
}

fn window(start: DateTime<Utc>, end: DateTime<Utc>) -> Result<Span, Fault> {
    if end <= start {
        return Err(invalid("the window ends before it begins"));
    }
    if end - start > LONGEST {
        return Err(invalid("the window is longer than a year"));
    }
    Ok(Span { start, end })
}

/// An address goes into other programs' files: it must be one word.
fn check_attendees(attendees: &[String]) -> Result<(), Fault> {
    if attendees.is_empty() || attendees.len() > MOST_ATTENDEES {
        return Err(invalid(format!("from 1 to {MOST_ATTENDEES} attendees can be asked for")));
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

fn invalid(message: impl Into<String>) -> Fault {
    Fault::new("INVALID_ARGUMENT", message)
}

fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DateTime<Utc>, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

fn instants<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DateTime<Utc>>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| parse(text)).collect::<Result<_, _>>().map_err(serde::de::Error::custom)
}

/// Years beyond these are slips, and the zones' rules end with them.
fn parse(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text)
        .map_err(|_| format!("`{text}` is not a time such as 2026-03-02T09:00:00+01:00"))?;
    let year = chrono::Datelike::year(&time);
    if (1970..=2200).contains(&year) {
        Ok(time.to_utc())
    } else {
        Err(format!("the year {year} is out of reach"))
    }
}

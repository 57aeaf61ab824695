//! The events that Toolwright has booked, for people and for other programs.

use std::path::Path;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::answer;
use crate::busy::Span;
use crate::ics;
use crate::records::Event;
use crate::settings::Settings;
use crate::store::{Error, Store};
use crate::zone;

/// Events in order.
#[derive(Debug)]
pub struct Listing(Vec<Event>);

/// One event as a person would like to see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub title: String,
    /// In the event's own zone.
    pub start: String,
    pub end: String,
    pub attendees: Vec<String>,
    pub conference: Option<String>,
}

impl Listing {
    /// Reads the file; one that is not there has no events. `from` and `to` are dates in the zone of the settings, or
    /// times with an offset; `to` is not included.
    pub fn read(
        file: &Path,
        settings: &Settings,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Self, String> {
        let bound = |text: Option<&str>, fallback| text.map_or(Ok(fallback), |text| instant(text, settings));
        let start = bound(from, DateTime::UNIX_EPOCH)?;
        let end = bound(to, DateTime::<Utc>::MAX_UTC)?;
        if end <= start {
            return Err("--to must be later than --from".to_owned());
        }
        if !file.exists() {
            return Ok(Self(Vec::new()));
        }
        let told = |error: Error| error.to_string();
        let events = Store::open(file).and_then(|store| store.events(Span { start, end })).map_err(told)?;
        Ok(Self(events))
    }

    /// As a calendar that other programs read.
    pub fn to_ics(&self) -> String {
        ics::write(&self.0)
    }

    /// As JSON, with the members of `calendar.commit`'s answer and more.
    pub fn to_json(&self) -> Value {
        let event = |event: &Event| {
            let mut value = answer::event(event);
            value["uid"] = ics::uid(event).into();
            value["organizer"] = event.organizer.clone().into();
            value["note"] = json!(event.note);
            value["createdAt"] = event.created.to_rfc3339_opts(SecondsFormat::AutoSi, true).into();
            value
        };
        self.0.iter().map(event).collect()
    }

    /// For a table.
    pub fn rows(&self) -> Vec<Listed> {
        let row = |event: &Event| {
            let zone = zone::named(&event.timezone).unwrap_or(chrono_tz::Tz::UTC);
            let at = |time: DateTime<Utc>, form: &str| time.with_timezone(&zone).format(form).to_string();
            Listed {
                id: event.id.clone(),
                title: event.title.clone(),
                start: at(event.span.start, "%Y-%m-%d %H:%M"),
                end: at(event.span.end, "%H:%M %Z"),
                attendees: event.attendees.clone(),
                conference: event.conference.clone(),
            }
        };
        self.0.iter().map(row).collect()
    }
}

fn instant(text: &str, settings: &Settings) -> Result<DateTime<Utc>, String> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(zone::opening(settings.timezone.0, day.and_time(NaiveTime::MIN)));
    }
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc()).map_err(|_| {
        format!("`{text}` is neither a date such as 2026-03-02 nor a time such as 2026-03-02T09:00:00+01:00")
    })
}

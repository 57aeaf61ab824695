//! The booked events, for the command line and for export to other programs.

use std::path::Path;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use serde_json::{Value, json};

use crate::ics;
use crate::local_time;
use crate::output;
use crate::records::Event;
use crate::settings::Settings;
use crate::span::Span;
use crate::store::Store;

/// Events, sorted by their start.
#[derive(Debug)]
pub struct EventList(Vec<Event>);

/// One event as text for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    pub id: String,
    pub title: String,
    /// In the event's own time zone.
    pub start: String,
    pub end: String,
    pub attendees: Vec<String>,
    pub conference: Option<String>,
}

impl EventList {
    /// Reads the file; a missing file has no events. `from` and `to` (exclusive) are dates in the time zone of the
    /// settings, or times with an offset.
    pub fn read(
        file: &Path,
        settings: &Settings,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Self, String> {
        let bound =
            |text: Option<&str>, default| text.map_or(Ok(default), |text| parse_bound(text, settings));
        let start = bound(from, DateTime::UNIX_EPOCH)?;
        let end = bound(to, DateTime::<Utc>::MAX_UTC)?;
        if end <= start {
            return Err("--to must be later than --from".to_owned());
        }
        if !file.exists() {
            return Ok(Self(Vec::new()));
        }
        let events = Store::open(file).and_then(|store| store.events(Span { start, end }));
        events.map(Self).map_err(|error| error.to_string())
    }

    /// As an iCalendar file.
    pub fn to_ics(&self) -> String {
        ics::write(&self.0)
    }

    /// As JSON: the result of `calendar.commit` with additional fields.
    pub fn to_json(&self) -> Value {
        let event = |event: &Event| {
            let mut value = output::event(event);
            value["uid"] = ics::uid(event).into();
            value["organizer"] = event.organizer.clone().into();
            value["note"] = json!(event.note);
            value["createdAt"] = output::utc(event.created).into();
            value
        };
        self.0.iter().map(event).collect()
    }

    pub fn rows(&self) -> Vec<EventRow> {
        let row = |event: &Event| {
            let zone = local_time::zone_or_utc(&event.timezone);
            let format = |time: DateTime<Utc>, form| time.with_timezone(&zone).format(form).to_string();
            EventRow {
                id: event.id.clone(),
                title: event.title.clone(),
                start: format(event.span.start, "%Y-%m-%d %H:%M"),
                end: format(event.span.end, "%H:%M %Z"),
                attendees: event.attendees.clone(),
                conference: event.conference.clone(),
            }
        };
        self.0.iter().map(row).collect()
    }
}

fn parse_bound(text: &str, settings: &Settings) -> Result<DateTime<Utc>, String> {
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(local_time::first_instant(settings.timezone.0, day.and_time(NaiveTime::MIN)));
    }
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc()).map_err(|_| {
        format!("`{text}` is neither a date like 2026-03-02 nor a time like 2026-03-02T09:00:00+01:00")
    })
}

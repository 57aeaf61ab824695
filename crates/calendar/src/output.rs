//! The JSON values that handlers receive, as docs/reference/capabilities.md defines them.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use crate::local_time;
use crate::records::{Draft, Event, Reservation};
use crate::slots::Slot;
use crate::span::Span;

pub fn free_busy(busy: &BTreeMap<String, Vec<Span>>, unknown: &[String]) -> Value {
    let span = |span: &Span| json!({ "start": utc(span.start), "end": utc(span.end) });
    let busy = busy.iter().map(|(address, spans)| (address.clone(), spans.iter().map(span).collect()));
    json!({ "busy": Value::Object(busy.collect()), "unknownAttendees": unknown })
}

pub fn proposal(draft: Option<&Draft>, unknown: &[String]) -> Value {
    json!({
        "draftId": draft.map(|draft| &draft.id),
        "slots": draft.map(slots).unwrap_or_default(),
        "unknownAttendees": unknown,
        "expiresAt": draft.map(|draft| whole_seconds(draft.expires)),
    })
}

/// `place` is where the event takes place, as a person reads it.
pub fn draft(
    draft: &Draft,
    reservation: Option<&Reservation>,
    place: Option<String>,
    now: DateTime<Utc>,
) -> Value {
    let booked = reservation.filter(|reservation| reservation.held_until.is_none());
    // A draft with a held time stays open after it expires: the interrupted call may continue.
    let status = match (booked, reservation) {
        (Some(_), _) => "committed",
        (None, None) if draft.expires <= now => "expired",
        _ => "open",
    };
    json!({
        "draftId": draft.id,
        "title": draft.title,
        "attendees": draft.attendees,
        "durationMinutes": draft.minutes,
        "timezone": draft.timezone,
        "slots": slots_with_text(draft),
        "place": place,
        "status": status,
        "eventId": booked.map(|booked| &booked.event.id),
        "expiresAt": whole_seconds(draft.expires),
    })
}

pub fn event(event: &Event) -> Value {
    let zone = local_time::zone_or_utc(&event.timezone);
    json!({
        "eventId": event.id,
        "title": event.title,
        "start": local(event.span.start, zone),
        "end": local(event.span.end, zone),
        "timezone": event.timezone,
        "attendees": event.attendees,
        "conferenceUrl": event.conference,
    })
}

/// The slots of a draft, each with its time as a person reads it.
fn slots_with_text(draft: &Draft) -> Vec<Value> {
    let zone = local_time::zone_or_utc(&draft.timezone);
    let with_text = |(mut value, slot): (Value, &Slot)| {
        let (start, end) = (slot.span.start.with_timezone(&zone), slot.span.end.with_timezone(&zone));
        let end_format = if start.date_naive() == end.date_naive() { "%H:%M" } else { "%A %-d %B %Y, %H:%M" };
        let (begin, end) = (start.format("%A %-d %B %Y, %H:%M"), end.format(end_format));
        value["text"] = format!("{begin}–{end} ({}, UTC{})", draft.timezone, start.format("%:z")).into();
        value
    };
    slots(draft).into_iter().zip(&draft.slots).map(with_text).collect()
}

fn slots(draft: &Draft) -> Vec<Value> {
    let zone = local_time::zone_or_utc(&draft.timezone);
    let slot = |slot: &Slot| {
        let (start, end) = (local(slot.span.start, zone), local(slot.span.end, zone));
        json!({ "start": start, "end": end, "preferred": slot.preferred })
    };
    draft.slots.iter().map(slot).collect()
}

fn local(instant: DateTime<Utc>, zone: Tz) -> String {
    instant.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::AutoSi, false)
}

fn whole_seconds(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Secs, true)
}

pub fn utc(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

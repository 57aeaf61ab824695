//! What handlers get, as docs/reference/capabilities.md fixes it.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use serde_json::{Value, json};

use crate::busy::Span;
use crate::records::{Draft, Event, Progress};
use crate::slots::Slot;
use crate::zone;

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
        "expiresAt": draft.map(|draft| whole(draft.expires)),
    })
}

pub fn draft(draft: &Draft, progress: Option<&Progress>, now: DateTime<Utc>) -> Value {
    let booked = progress.filter(|progress| progress.held_until.is_none());
    // A call that was interrupted may be taken up again, however late.
    let status = match (booked, progress) {
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
        "slots": slots(draft),
        "status": status,
        "eventId": booked.map(|booked| &booked.event.id),
        "expiresAt": whole(draft.expires),
    })
}

pub fn event(event: &Event) -> Value {
    let zone = zone_of(&event.timezone);
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

fn slots(draft: &Draft) -> Vec<Value> {
    let zone = zone_of(&draft.timezone);
    let slot = |slot: &Slot| {
        let (start, end) = (local(slot.span.start, zone), local(slot.span.end, zone));
        json!({ "start": start, "end": end, "preferred": slot.preferred })
    };
    draft.slots.iter().map(slot).collect()
}

/// Only zones that exist are kept.
fn zone_of(name: &str) -> Tz {
    zone::named(name).unwrap_or(Tz::UTC)
}

fn local(instant: DateTime<Utc>, zone: Tz) -> String {
    instant.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::AutoSi, false)
}

/// To the second: nobody waits for the rest of it.
fn whole(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn utc(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

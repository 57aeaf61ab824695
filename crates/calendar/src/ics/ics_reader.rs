//! Reads the busy times of iCalendar text: expands recurrences, converts local times, and skips cancelled and
//! transparent events.

use calcard::common::PartialDateTime;
use calcard::common::timezone::Tz as AnyZone;
use calcard::icalendar::dates::{CalendarEvent, TimeOrDelta};
use calcard::icalendar::timezone::TzResolver;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarParameterName,
    ICalendarParameterValue, ICalendarParticipationStatus, ICalendarProperty, ICalendarStatus,
    ICalendarTransparency, ICalendarValue,
};
use chrono::{DateTime, Duration, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;

use super::ics_writer::partial_date_time;
use crate::local_time;
use crate::span::Span;

/// The limit of recurrences of one event before and in a window: more than fifty years of days.
const MAX_RECURRENCES: usize = 20_000;

/// One time at which an event takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    pub span: Span,
    /// The addresses of attendees who have not declined, in lower case.
    pub attending: Vec<String>,
    pub declined: Vec<String>,
    pub organizer: Option<String>,
}

/// The busy times of a calendar in a window. `zone` is the time zone of all-day events and floating times.
pub fn occurrences(text: &str, window: Span, zone: Tz) -> Result<Vec<Occurrence>, String> {
    let mut calendar = ICalendar::parse(text).map_err(|_| "it is not valid iCalendar".to_owned())?;
    for component in &mut calendar.components {
        limit_recurrence(component, window.end);
    }
    let resolver = calendar.build_tz_resolver();
    let expanded = calendar.expand_dates(AnyZone::Floating, MAX_RECURRENCES);
    let expanded_spans = expanded.events.iter().filter_map(|event| {
        let component = calendar.component_by_id(event.comp_id)?;
        Some((component, span_of_occurrence(event, &zone_of(component, &resolver, zone))?))
    });
    // The library rejects single events at a time that a clock change skips or repeats.
    let single_spans = expanded.errors.iter().filter_map(|error| {
        let component = calendar.component_by_id(error.comp_id)?;
        Some((component, span_of_single_event(component, &zone_of(component, &resolver, zone))?))
    });
    let busy = expanded_spans
        .chain(single_spans)
        .filter(|(component, span)| is_busy(component) && span.overlaps(&window));
    Ok(busy.map(|(component, span)| occurrence(component, span)).collect())
}

/// Ends an endless recurrence at the end of the window.
fn limit_recurrence(component: &mut ICalendarComponent, end: DateTime<Utc>) {
    let rules = component.entries.iter_mut().filter(|entry| entry.name == ICalendarProperty::Rrule);
    for value in rules.flat_map(|entry| &mut entry.values) {
        if let ICalendarValue::RecurrenceRule(rule) = value
            && rule.until.is_none()
            && rule.count.is_none()
        {
            // Rules are expanded in local time, which may be a day ahead.
            rule.until = Some(partial_date_time((end + Duration::days(2)).naive_utc()));
        }
    }
}

/// The time zone of an event's local times.
fn zone_of(component: &ICalendarComponent, resolver: &TzResolver<&str>, fallback: Tz) -> AnyZone {
    let start = component
        .property(&ICalendarProperty::Dtstart)
        .or_else(|| component.property(&ICalendarProperty::RecurrenceId));
    let is_utc = start.and_then(date_time).is_some_and(|time| time.tz_hour.is_some());
    if is_utc {
        return AnyZone::UTC;
    }
    let named = start.and_then(ICalendarEntry::tz_id);
    match named.and_then(|name| resolver.resolve(name)) {
        Some(AnyZone::Floating) | None => AnyZone::Tz(fallback),
        Some(zone) => zone,
    }
}

fn span_of_occurrence(
    event: &CalendarEvent<DateTime<AnyZone>, TimeOrDelta<DateTime<AnyZone>, Duration>>,
    zone: &AnyZone,
) -> Option<Span> {
    let at = |time: &DateTime<AnyZone>| {
        if time.timezone().is_floating() { local(zone, time.naive_local()) } else { Some(time.to_utc()) }
    };
    let start = at(&event.start)?;
    let end = match &event.end {
        TimeOrDelta::Time(time) => at(time)?,
        // A day with a clock change does not have 24 hours.
        TimeOrDelta::Delta(length) if event.start.timezone().is_floating() => {
            local(zone, event.start.naive_local() + *length)?
        }
        TimeOrDelta::Delta(length) => start + *length,
    };
    Some(Span { start, end })
}

fn span_of_single_event(component: &ICalendarComponent, zone: &AnyZone) -> Option<Span> {
    if component.has_property(&ICalendarProperty::Rrule) {
        tracing::warn!("the recurrence rule of an event is not supported; only its first occurrence counts");
    }
    let time = |name| {
        let time = component.property(&name).and_then(date_time)?.to_date_time()?;
        match time.offset {
            Some(_) => Some(time.date_time.and_utc()),
            None => local(zone, time.date_time),
        }
    };
    let start = time(ICalendarProperty::Dtstart)?;
    let length =
        component.property(&ICalendarProperty::Duration).and_then(|entry| match entry.values.first() {
            Some(ICalendarValue::Duration(length)) => length.to_time_delta(),
            _ => None,
        });
    let end = time(ICalendarProperty::Dtend).or_else(|| Some(start + length?))?;
    Some(Span { start, end })
}

fn local(zone: &AnyZone, time: NaiveDateTime) -> Option<DateTime<Utc>> {
    match zone {
        AnyZone::Tz(zone) => Some(local_time::event_instant(*zone, time)),
        other => other.from_local_datetime(&time).earliest().map(|time| time.to_utc()),
    }
}

fn date_time(entry: &ICalendarEntry) -> Option<&PartialDateTime> {
    entry.values.first().and_then(ICalendarValue::as_partial_date_time)
}

/// Whether the event makes its attendees busy. An event with a start time and no end has no length.
fn is_busy(component: &ICalendarComponent) -> bool {
    let has_length = component.has_property(&ICalendarProperty::Dtend)
        || component.has_property(&ICalendarProperty::Duration)
        || component
            .property(&ICalendarProperty::Dtstart)
            .and_then(date_time)
            .is_some_and(|time| !time.has_time());
    component.component_type == ICalendarComponentType::VEvent
        && has_length
        && component.status() != Some(&ICalendarStatus::Cancelled)
        && component.transparency() != Some(&ICalendarTransparency::Transparent)
}

fn occurrence(component: &ICalendarComponent, span: Span) -> Occurrence {
    let address = |entry: &ICalendarEntry| entry.calendar_address().map(str::to_lowercase);
    let declines = |entry: &ICalendarEntry| {
        let status = entry.parameter(&ICalendarParameterName::Partstat);
        matches!(status, Some(ICalendarParameterValue::Partstat(ICalendarParticipationStatus::Declined)))
    };
    let attendees: Vec<_> = component.properties(&ICalendarProperty::Attendee).collect();
    let (declined, attending): (Vec<_>, Vec<_>) = attendees.into_iter().partition(|entry| declines(entry));
    Occurrence {
        span,
        attending: attending.into_iter().filter_map(address).collect(),
        declined: declined.into_iter().filter_map(address).collect(),
        organizer: component.property(&ICalendarProperty::Organizer).and_then(address),
    }
}

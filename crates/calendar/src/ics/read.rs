//! What somebody wrote, as the times that it blocks: recurrences expanded, local times placed by their zones, what is
//! cancelled or does not block left out.

use calcard::common::PartialDateTime;
use calcard::common::timezone::Tz as AnyZone;
use calcard::icalendar::dates::{CalendarEvent, TimeOrDelta};
use calcard::icalendar::timezone::TzResolver;
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarParameterName,
    ICalendarParameterValue, ICalendarParticipationStatus, ICalendarProperty, ICalendarStatus,
    ICalendarTransparency, ICalendarValue,
};
use chrono::{DateTime, Datelike, Duration, NaiveDateTime, TimeZone, Timelike, Utc};
use chrono_tz::Tz;

use crate::busy::Span;
use crate::zone;

/// As often as one event may recur before and in a window; twenty years of days, and more.
const MOST: usize = 20_000;

/// One time at which an event takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    pub span: Span,
    /// Addresses in lower case, without those who declined.
    pub attending: Vec<String>,
    pub declined: Vec<String>,
    pub organizer: Option<String>,
}

/// The times in a window that the events of a calendar block. `zone` is where whole days and floating times are.
pub fn occurrences(text: &str, window: Span, zone: Tz) -> Result<Vec<Occurrence>, String> {
    let mut calendar = ICalendar::parse(text).map_err(|_| "an event is not valid iCalendar".to_owned())?;
    for component in &mut calendar.components {
        end_with(component, window.end);
    }
    let resolver = calendar.build_tz_resolver();
    let expanded = calendar.expand_dates(AnyZone::Floating, MOST);
    let placed = expanded.events.iter().filter_map(|event| {
        let component = calendar.component_by_id(event.comp_id)?;
        Some((component, place(event, &zone_of(component, &resolver, zone))?))
    });
    // Its library does not place a single event in an hour that the clock skips or shows twice.
    let by_hand = expanded.errors.iter().filter_map(|error| {
        let component = calendar.component_by_id(error.comp_id)?;
        Some((component, place_by_hand(component, &zone_of(component, &resolver, zone))?))
    });
    let found = placed.chain(by_hand).filter(|(component, span)| blocks(component) && span.overlaps(&window));
    Ok(found.map(|(component, span)| occurrence(component, span)).collect())
}

/// An event that recurs for ever is followed only as far as anybody asks.
fn end_with(component: &mut ICalendarComponent, end: DateTime<Utc>) {
    let rules = component.entries.iter_mut().filter(|entry| entry.name == ICalendarProperty::Rrule);
    for value in rules.flat_map(|entry| &mut entry.values) {
        if let ICalendarValue::RecurrenceRule(rule) = value
            && rule.until.is_none()
            && rule.count.is_none()
        {
            // Rules are followed in local time, which may be a day ahead.
            let end = end + Duration::days(2);
            let small = |number: u32| u8::try_from(number).ok();
            rule.until = Some(PartialDateTime {
                year: u16::try_from(end.year()).ok(),
                month: small(end.month()),
                day: small(end.day()),
                hour: small(end.hour()),
                minute: small(end.minute()),
                second: small(end.second()),
                ..PartialDateTime::default()
            });
        }
    }
}

/// Where the local times of an event are.
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

fn place(
    event: &CalendarEvent<DateTime<AnyZone>, TimeOrDelta<DateTime<AnyZone>, Duration>>,
    zone: &AnyZone,
) -> Option<Span> {
    let at = |time: &DateTime<AnyZone>| {
        if time.timezone().is_floating() { local(zone, time.naive_local()) } else { Some(time.to_utc()) }
    };
    let start = at(&event.start)?;
    let end = match &event.end {
        TimeOrDelta::Time(time) => at(time)?,
        // A day of a clock that is changed is not 24 hours long.
        TimeOrDelta::Delta(length) if event.start.timezone().is_floating() => {
            local(zone, event.start.naive_local() + *length)?
        }
        TimeOrDelta::Delta(length) => start + *length,
    };
    Some(Span { start, end })
}

fn place_by_hand(component: &ICalendarComponent, zone: &AnyZone) -> Option<Span> {
    if component.has_property(&ICalendarProperty::Rrule) {
        tracing::warn!("an event recurs by a rule that cannot be followed; only its first time is looked at");
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
        AnyZone::Tz(zone) => Some(zone::meant(*zone, time)),
        other => other.from_local_datetime(&time).earliest().map(|time| time.to_utc()),
    }
}

fn date_time(entry: &ICalendarEntry) -> Option<&PartialDateTime> {
    entry.values.first().and_then(ICalendarValue::as_partial_date_time)
}

/// Whether anybody is taken while it lasts. An event that begins at a time and has no end has no length.
fn blocks(component: &ICalendarComponent) -> bool {
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

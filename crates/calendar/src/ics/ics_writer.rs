//! Writes events as iCalendar text: local times with the rules of their time zone.

use calcard::common::{CalendarScale, PartialDateTime};
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarFeatureType,
    ICalendarParameter, ICalendarParameterName, ICalendarParticipationRole, ICalendarParticipationStatus,
    ICalendarProperty, ICalendarStatus, ICalendarValue, ICalendarValueType, Uri,
};
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike, Utc};

use crate::local_time;
use crate::records::Event;

/// The globally unique id of an event.
pub fn uid(event: &Event) -> String {
    format!("{}@toolwright", event.id)
}

/// A calendar with these events.
pub fn write(events: &[Event]) -> String {
    let mut root = ICalendarComponent::new(ICalendarComponentType::VCalendar);
    root.add_property(ICalendarProperty::Version, "2.0");
    root.add_property(ICalendarProperty::Prodid, "-//Toolwright//Toolwright//EN");
    root.add_property(ICalendarProperty::Calscale, CalendarScale::Gregorian);
    let mut components = vec![root];
    components.extend(events.iter().map(component));
    components[0].component_ids = (1..).take(events.len()).collect();
    let mut calendar = ICalendar { components };
    calendar.add_missing_timezones();
    calendar.to_string()
}

fn component(event: &Event) -> ICalendarComponent {
    let mut component = ICalendarComponent::new(ICalendarComponentType::VEvent);
    component.add_uid(&uid(event));
    component.add_dtstamp(utc(event.created));
    component.add_property(ICalendarProperty::Created, utc(event.created));
    component.add_sequence(0);
    component.entries.push(time(ICalendarProperty::Dtstart, event.span.start, &event.timezone));
    component.entries.push(time(ICalendarProperty::Dtend, event.span.end, &event.timezone));
    component.add_property(ICalendarProperty::Summary, clean_text(&event.title));
    component.add_property(ICalendarProperty::Status, ICalendarStatus::Confirmed);
    let organizer = [ICalendarParameter::cn("Toolwright".to_owned())];
    component.add_property_with_params(ICalendarProperty::Organizer, organizer, mailto(&event.organizer));
    for attendee in &event.attendees {
        let parameters = [
            ICalendarParameter::role(ICalendarParticipationRole::ReqParticipant),
            ICalendarParameter::partstat(ICalendarParticipationStatus::NeedsAction),
            ICalendarParameter::rsvp(true),
        ];
        component.add_property_with_params(ICalendarProperty::Attendee, parameters, mailto(attendee));
    }
    let description: Vec<String> =
        event.note.iter().chain(&event.conference).map(|part| clean_text(part)).collect();
    if !description.is_empty() {
        component.add_property(ICalendarProperty::Description, description.join("\n\n"));
    }
    if let Some(link) = &event.conference {
        // Most programs show the location; those with RFC 7986 show a button for the conference.
        component.add_property(ICalendarProperty::Location, link.as_str());
        let parameters = [
            ICalendarParameter::new(ICalendarParameterName::Value, ICalendarValueType::Uri),
            ICalendarParameter::feature(ICalendarFeatureType::Video),
        ];
        let link = ICalendarValue::Uri(Uri::Location(link.clone()));
        component.add_property_with_params(ICalendarProperty::Conference, parameters, link);
    }
    component
}

/// Normalises line ends and removes other control characters.
fn clean_text(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "")
}

/// In local time, so that the event keeps its local time if the rules of the zone change. The second of two repeated
/// times can only be written in UTC.
fn time(name: ICalendarProperty, instant: DateTime<Utc>, timezone: &str) -> ICalendarEntry {
    let zone = local_time::parse_zone(timezone).filter(|zone| *zone != chrono_tz::Tz::UTC);
    let local = zone.map(|zone| (zone, instant.with_timezone(&zone).naive_local()));
    match local.filter(|(zone, local)| local_time::event_instant(*zone, *local) == instant) {
        Some((_, local)) => {
            let tzid = ICalendarParameter::tzid(timezone.to_owned());
            ICalendarEntry::new(name).with_param(tzid).with_value(partial_date_time(local))
        }
        None => ICalendarEntry::new(name).with_value(utc(instant)),
    }
}

fn utc(instant: DateTime<Utc>) -> PartialDateTime {
    PartialDateTime { tz_hour: Some(0), tz_minute: Some(0), ..partial_date_time(instant.naive_utc()) }
}

pub(super) fn partial_date_time(local: NaiveDateTime) -> PartialDateTime {
    let small = |number: u32| u8::try_from(number).ok();
    PartialDateTime {
        year: u16::try_from(local.year()).ok(),
        month: small(local.month()),
        day: small(local.day()),
        hour: small(local.hour()),
        minute: small(local.minute()),
        second: small(local.second()),
        ..PartialDateTime::default()
    }
}

fn mailto(address: &str) -> ICalendarValue {
    ICalendarValue::Uri(Uri::Location(format!("mailto:{address}")))
}

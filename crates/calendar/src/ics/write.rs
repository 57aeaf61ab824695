//! Events as other programs read them: local times with the rules of their zone, folded and escaped.

use calcard::common::{CalendarScale, PartialDateTime};
use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType, ICalendarEntry, ICalendarFeatureType,
    ICalendarParameter, ICalendarParameterName, ICalendarParticipationRole, ICalendarParticipationStatus,
    ICalendarProperty, ICalendarStatus, ICalendarValue, ICalendarValueType, Uri,
};
use chrono::{DateTime, Datelike, NaiveDateTime, Timelike, Utc};

use crate::records::Event;
use crate::zone;

/// The name of an event in all calendars of the world.
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
    component.add_property(ICalendarProperty::Summary, text(&event.title));
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
        event.note.iter().chain(&event.conference).map(|part| text(part)).collect();
    if !description.is_empty() {
        component.add_property(ICalendarProperty::Description, description.join("\n\n"));
    }
    if let Some(link) = &event.conference {
        // Most programs show the place; those that know RFC 7986 make a button of the conference.
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

/// Lines end as the format wants it; other control characters have no place in it.
fn text(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "")
}

/// As the clock of the event's zone shows it, so that it stays there if the rules of the zone change. An hour that the
/// clock shows twice can only be told in UTC.
fn time(name: ICalendarProperty, instant: DateTime<Utc>, timezone: &str) -> ICalendarEntry {
    let zone = zone::named(timezone).filter(|zone| *zone != chrono_tz::Tz::UTC);
    let local = zone.map(|zone| (zone, instant.with_timezone(&zone).naive_local()));
    match local.filter(|(zone, local)| zone::meant(*zone, *local) == instant) {
        Some((_, local)) => {
            let tzid = ICalendarParameter::tzid(timezone.to_owned());
            ICalendarEntry::new(name).with_param(tzid).with_value(partial(local))
        }
        None => ICalendarEntry::new(name).with_value(utc(instant)),
    }
}

fn utc(instant: DateTime<Utc>) -> PartialDateTime {
    PartialDateTime { tz_hour: Some(0), tz_minute: Some(0), ..partial(instant.naive_utc()) }
}

fn partial(local: NaiveDateTime) -> PartialDateTime {
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

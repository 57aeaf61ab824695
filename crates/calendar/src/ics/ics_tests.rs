//! Busy times of iCalendar texts, and events that are written and read again.

use chrono::{DateTime, SecondsFormat, Utc};

use super::{Occurrence, occurrences, write};
use crate::local_time;
use crate::records::Event;
use crate::span::Span;

fn time(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

fn window(start: &str, end: &str) -> Span {
    Span { start: time(start), end: time(end) }
}

/// The busy times of events, with all-day events in Berlin.
fn busy_times(events: &str, window: Span) -> Vec<String> {
    let text =
        format!("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\n{events}\nEND:VCALENDAR\n").replace('\n', "\r\n");
    let text_of = |found: &Occurrence| {
        let rfc3339 = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
        format!("{} {}", rfc3339(found.span.start), rfc3339(found.span.end))
    };
    let found = occurrences(&text, window, local_time::parse_zone("Europe/Berlin").unwrap()).unwrap();
    let mut found: Vec<_> = found.iter().map(text_of).collect();
    found.sort();
    found
}

fn march() -> Span {
    window("2026-03-01T00:00:00Z", "2026-04-07T00:00:00Z")
}

fn event(lines: &str) -> String {
    format!("BEGIN:VEVENT\nUID:a\nDTSTAMP:20260101T000000Z\n{lines}\nEND:VEVENT")
}

#[test]
fn a_weekly_event_keeps_its_local_time_with_its_exceptions() {
    let master = event(
        "DTSTART;TZID=Europe/Berlin:20200106T090000\nDTEND;TZID=Europe/Berlin:20200106T100000\nRRULE:FREQ=WEEKLY;BYDAY=MO\nEXDATE;TZID=Europe/Berlin:20260316T090000",
    );
    let moved = event(
        "RECURRENCE-ID;TZID=Europe/Berlin:20260309T090000\nDTSTART;TZID=Europe/Berlin:20260309T140000\nDTEND;TZID=Europe/Berlin:20260309T150000",
    );
    let expected = [
        "2026-03-02T08:00:00Z 2026-03-02T09:00:00Z",
        "2026-03-09T13:00:00Z 2026-03-09T14:00:00Z",
        "2026-03-23T08:00:00Z 2026-03-23T09:00:00Z",
        "2026-03-30T07:00:00Z 2026-03-30T08:00:00Z",
        "2026-04-06T07:00:00Z 2026-04-06T08:00:00Z",
    ];
    assert_eq!(busy_times(&format!("{master}\n{moved}"), march()), expected);
}

#[test]
fn an_event_in_utc_recurs_in_utc() {
    let text =
        event("DTSTART:20260327T080000Z\nDURATION:PT30M\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE:20260328T080000Z");
    let expected = [
        "2026-03-27T08:00:00Z 2026-03-27T08:30:00Z",
        "2026-03-29T08:00:00Z 2026-03-29T08:30:00Z",
        "2026-03-30T08:00:00Z 2026-03-30T08:30:00Z",
    ];
    assert_eq!(busy_times(&text, march()), expected);
}

#[test]
fn all_day_events_follow_the_time_zone_and_its_clock_changes() {
    let text = event("DTSTART;VALUE=DATE:20260329");
    assert_eq!(busy_times(&text, march()), ["2026-03-28T23:00:00Z 2026-03-29T22:00:00Z"]);
    let text = event("DTSTART;VALUE=DATE:20260310\nDTEND;VALUE=DATE:20260312");
    assert_eq!(busy_times(&text, march()), ["2026-03-09T23:00:00Z 2026-03-11T23:00:00Z"]);
}

#[test]
fn floating_times_are_in_the_configured_time_zone() {
    let text = event("DTSTART:20260310T090000\nDTEND:20260310T093000");
    assert_eq!(busy_times(&text, march()), ["2026-03-10T08:00:00Z 2026-03-10T08:30:00Z"]);
}

#[test]
fn time_zone_names_of_other_programs_are_known() {
    for name in ["W. Europe Standard Time", "/freeassociation.sourceforge.net/Tzfile/Europe/Berlin"] {
        let text =
            event(&format!("DTSTART;TZID=\"{name}\":20260310T090000\nDTEND;TZID=\"{name}\":20260310T093000"));
        assert_eq!(busy_times(&text, march()), ["2026-03-10T08:00:00Z 2026-03-10T08:30:00Z"], "{name}");
    }
}

#[test]
fn events_at_skipped_and_repeated_times_are_busy() {
    let autumn = window("2026-10-20T00:00:00Z", "2026-10-30T00:00:00Z");
    let text = event("DTSTART;TZID=Europe/Berlin:20261025T023000\nDTEND;TZID=Europe/Berlin:20261025T024500");
    assert_eq!(busy_times(&text, autumn), ["2026-10-25T00:30:00Z 2026-10-25T00:45:00Z"]);
    let text = event(
        "DTSTART;TZID=Europe/Berlin:20261024T023000\nDTEND;TZID=Europe/Berlin:20261024T024500\nRRULE:FREQ=DAILY;COUNT=3",
    );
    let expected = [
        "2026-10-24T00:30:00Z 2026-10-24T00:45:00Z",
        "2026-10-25T00:30:00Z 2026-10-25T00:45:00Z",
        "2026-10-26T01:30:00Z 2026-10-26T01:45:00Z",
    ];
    assert_eq!(busy_times(&text, autumn), expected);
    let text = event("DTSTART;TZID=Europe/Berlin:20260329T023000\nDURATION:PT15M");
    assert_eq!(busy_times(&text, march()), ["2026-03-29T01:30:00Z 2026-03-29T01:45:00Z"]);
}

#[test]
fn cancelled_transparent_and_empty_events_are_not_busy() {
    for line in ["STATUS:CANCELLED", "TRANSP:TRANSPARENT"] {
        let text = event(&format!("DTSTART:20260310T090000Z\nDTEND:20260310T100000Z\n{line}"));
        assert!(busy_times(&text, march()).is_empty(), "{line}");
    }
    assert!(busy_times(&event("DTSTART:20260310T090000Z"), march()).is_empty());
    let task = "BEGIN:VTODO\nUID:t\nDTSTAMP:20260101T000000Z\nDTSTART:20260310T090000Z\nDUE:20260310T100000Z\nEND:VTODO";
    assert!(busy_times(task, march()).is_empty());
}

#[test]
fn an_endless_rule_is_expanded_only_up_to_the_window() {
    let text = event("DTSTART:20260301T000000Z\nDURATION:PT1M\nRRULE:FREQ=SECONDLY");
    assert!(busy_times(&text, window("2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z")).len() <= 20_000);
}

#[test]
fn a_written_event_is_read_back_unchanged() {
    let event = Event {
        id: "evt_1".to_owned(),
        title: "Léger; lights, cues \\ and a title that is so long that its line has to be folded, twice at the least, \
                as lines of more than 75 bytes must be"
            .to_owned(),
        attendees: vec!["Mira@studio.example".to_owned(), "jon@studio.example".to_owned()],
        span: window("2026-03-29T08:00:00Z", "2026-03-29T09:00:00Z"),
        timezone: "Europe/Berlin".to_owned(),
        organizer: "toolwright@localhost".to_owned(),
        note: Some("Bring:\n- cue sheets\n- a lamp".to_owned()),
        conference: Some("https://meet.example/evt_1".to_owned()),
        meeting: None,
        created: time("2026-03-01T10:00:00Z"),
    };
    let text = write(std::slice::from_ref(&event));
    assert!(text.lines().all(|line| line.len() <= 75), "{text}");
    assert!(text.split('\n').all(|line| line.is_empty() || line.ends_with('\r')), "{text}");
    assert!(
        text.contains("BEGIN:VTIMEZONE") && text.contains("DTSTART;TZID=Europe/Berlin:20260329T100000"),
        "{text}"
    );
    let found = occurrences(&text, march(), local_time::parse_zone("UTC").unwrap()).unwrap();
    let expected = Occurrence {
        span: event.span,
        attending: vec!["mira@studio.example".to_owned(), "jon@studio.example".to_owned()],
        declined: Vec::new(),
        organizer: Some("toolwright@localhost".to_owned()),
    };
    assert_eq!(found, [expected]);
    // The second of two repeated times is written in UTC.
    let twice = Event { span: window("2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"), ..event };
    let text = write(&[twice]);
    assert!(text.contains("DTSTART:20261025T010000Z") && text.contains("DTEND:20261025T013000Z"), "{text}");
}

#[test]
fn text_that_is_not_icalendar_is_refused() {
    assert!(occurrences("hello", march(), chrono_tz::Tz::UTC).is_err());
}

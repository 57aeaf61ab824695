//! Exported `.ics` files, parsed by Python's icalendar, which is strict.

use serde_json::json;
use toolwright_calendar::{EventList, Settings};

use crate::python;
use crate::support::{ANNA, JON, MIRA, TestCalendar, commit, half_hour};

const PARSE: &str = r#"
import sys, json, icalendar
calendar = icalendar.Calendar.from_ical(sys.stdin.buffer.read())
assert not calendar.errors, calendar.errors
def people(event, name):
    found = event.get(name, [])
    return [str(one) for one in (found if isinstance(found, list) else [found])]
events = [{
    "uid": str(event["UID"]), "summary": str(event["SUMMARY"]), "start": event.decoded("DTSTART").isoformat(),
    "end": event.decoded("DTEND").isoformat(), "zone": event["DTSTART"].params.get("TZID"),
    "stamp": event.decoded("DTSTAMP").isoformat(), "description": str(event.get("DESCRIPTION", "")),
    "location": str(event.get("LOCATION", "")), "organizer": str(event["ORGANIZER"]), "attendees": people(event, "ATTENDEE"),
    "status": str(event["STATUS"]), "errors": [str(error) for error in event.errors],
} for event in calendar.walk("VEVENT")]
zones = sorted(str(zone["TZID"]) for zone in calendar.walk("VTIMEZONE"))
print(json.dumps({"version": str(calendar["VERSION"]), "events": events, "zones": zones}))
"#;

/// Three events: one with all fields, one in UTC and one in summer time.
pub async fn booked() -> TestCalendar {
    let calendar = TestCalendar::new(
        json!({ "conference": "https://meet.example/{event_id}", "organizer": "office@studio.example" }),
    );
    let mut request = half_hour(&[MIRA, JON]);
    request["title"] = json!(
        "Léger; lights, cues \\ & a title that is long enough to be folded — more than once, in fact 🎭🎭🎭🎭"
    );
    let proposal = calendar.call(ANNA, "propose", request).await.unwrap();
    let mut args = commit(proposal["draftId"].as_str().unwrap(), 0, "a");
    args["note"] = json!("Bring:\r\n- cue sheets; lamps, all\r- C:\\temp\0\u{1b}");
    calendar.call(ANNA, "commit", args).await.unwrap();
    for (timezone, start, end) in [
        ("UTC", "2026-03-03T00:00:00Z", "2026-03-04T00:00:00Z"),
        ("America/New_York", "2026-07-01T00:00:00Z", "2026-07-02T00:00:00Z"),
    ] {
        let mut request = half_hour(&[MIRA]);
        request["timezone"] = json!(timezone);
        request["windowStart"] = json!(start);
        request["windowEnd"] = json!(end);
        let proposal = calendar.call(ANNA, "propose", request).await.unwrap();
        calendar.call(ANNA, "commit", commit(proposal["draftId"].as_str().unwrap(), 0, "a")).await.unwrap();
    }
    calendar
}

#[tokio::test]
async fn another_program_reads_all_fields() {
    let calendar = booked().await;
    let rows = calendar.events().rows();
    let text = calendar.events().to_ics();
    assert!(text.lines().all(|line| line.len() <= 75) && !text.replace("\r\n", "").contains('\n'));
    let read = python::run(PARSE, &text);
    let link = format!("https://meet.example/{}", rows[0].id);
    let event = |index: usize| read["events"][index].clone();
    let first = json!({
        "uid": format!("{}@toolwright", rows[0].id),
        "summary": "Léger; lights, cues \\ & a title that is long enough to be folded — more than once, in fact 🎭🎭🎭🎭",
        "start": "2026-03-02T09:00:00+01:00", "end": "2026-03-02T09:30:00+01:00", "zone": "Europe/Berlin",
        "stamp": "2026-03-01T10:00:00+00:00", "description": format!("Bring:\n- cue sheets; lamps, all\n- C:\\temp\n\n{link}"),
        "location": link, "organizer": "mailto:office@studio.example",
        "attendees": [format!("mailto:{MIRA}"), format!("mailto:{JON}")], "status": "CONFIRMED", "errors": [],
    });
    assert_eq!(event(0), first);
    assert_eq!(event(1)["start"], "2026-03-03T09:00:00+00:00");
    assert_eq!(event(2)["start"], "2026-07-01T09:00:00-04:00");
    assert_eq!(read["zones"], json!(["America/New_York", "Europe/Berlin"]));
    assert_eq!(read["version"], "2.0");
}

#[tokio::test]
async fn a_copy_of_the_file_alone_has_all_events() {
    let calendar = booked().await;
    let copy = calendar.directory().join("copy.db");
    // The calendar is still open.
    std::fs::copy(calendar.file(), &copy).unwrap();
    let settings: Settings = serde_json::from_value(calendar.settings().clone()).unwrap();
    let copied = EventList::read(&copy, &settings, None, None).unwrap();
    assert_eq!(copied.to_ics(), calendar.events().to_ics());
    assert_eq!(copied.rows().len(), 3);
}

#[tokio::test]
async fn events_are_selected_by_dates_or_times() {
    let calendar = booked().await;
    let settings: Settings = serde_json::from_value(json!({ "timezone": "Europe/Berlin" })).unwrap();
    let count = |from: Option<&str>, to: Option<&str>| {
        EventList::read(&calendar.file(), &settings, from, to).map(|events| events.rows().len())
    };
    assert_eq!(count(None, None), Ok(3));
    assert_eq!(count(Some("2026-03-03"), None), Ok(2));
    assert_eq!(count(Some("2026-03-02"), Some("2026-03-03")), Ok(1));
    assert_eq!(count(Some("2026-03-02T09:00:01+01:00"), Some("2026-03-04")), Ok(1));
    assert!(count(Some("monday"), None).unwrap_err().contains("2026-03-02"));
    assert!(count(Some("2026-03-02"), Some("2026-03-02")).unwrap_err().contains("--to"));
    let nowhere = EventList::read(&calendar.directory().join("none.db"), &settings, None, None).unwrap();
    assert!(nowhere.rows().is_empty() && nowhere.to_ics().contains("VCALENDAR"));
    assert!(!calendar.directory().join("none.db").exists());
}

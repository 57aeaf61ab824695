use chrono::{DateTime, Datelike, Duration, SecondsFormat, Utc};
use proptest::prelude::*;
use serde_json::json;

use super::{Slot, SlotSearch, find_slots};
use crate::local_time;
use crate::settings::Settings;
use crate::span::{Span, merge_spans};

fn time(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

fn span(start: &str, end: &str) -> Span {
    Span { start: time(start), end: time(end) }
}

/// The proposed starts, with `*` after a preferred one.
fn starts(
    zone: &str,
    minutes: i64,
    window: Span,
    preferred: &[&str],
    busy: &[Span],
    settings: &Settings,
) -> Vec<String> {
    let preferred: Vec<_> = preferred.iter().map(|text| time(text)).collect();
    let zone = local_time::parse_zone(zone).unwrap();
    let search = SlotSearch { length: Duration::minutes(minutes), preferred: &preferred, window, zone };
    let text = |slot: &Slot| {
        assert_eq!(slot.span.end - slot.span.start, search.length);
        let start = slot.span.start.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, false);
        format!("{start}{}", if slot.preferred { "*" } else { "" })
    };
    find_slots(&search, &merge_spans(busy.to_vec(), window), settings).iter().map(text).collect()
}

fn all_days(hours: &str) -> Settings {
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    serde_json::from_value(json!({ "working_hours": hours, "days": days })).unwrap()
}

#[test]
fn preferred_times_come_first_in_their_order_and_need_not_be_working_hours() {
    let window = span("2026-03-02T08:00:00+01:00", "2026-03-02T22:00:00+01:00");
    let preferred = [
        "2026-03-02T20:00:00+01:00",
        "2026-03-02T10:00:00+01:00",
        "2026-03-02T20:00:00+01:00",
        "2026-03-02T12:00:00+01:00",
        "2026-03-02T21:30:00+01:00",
    ];
    let busy = [span("2026-03-02T12:30:00+01:00", "2026-03-02T14:10:00+01:00")];
    let found = starts("Europe/Berlin", 60, window, &preferred, &busy, &Settings::default());
    let expected = [
        "2026-03-02T20:00:00+01:00*",
        "2026-03-02T10:00:00+01:00*",
        "2026-03-02T09:00:00+01:00",
        "2026-03-02T11:00:00+01:00",
        "2026-03-02T14:30:00+01:00",
        "2026-03-02T15:30:00+01:00",
    ];
    assert_eq!(found, expected);
}

#[test]
fn at_most_ten_slots_are_proposed_and_none_on_weekends() {
    // The window begins on a Friday afternoon.
    let window = span("2026-03-06T15:50:00Z", "2026-03-20T00:00:00Z");
    let found = starts("UTC", 60, window, &[], &[], &Settings::default());
    assert_eq!(found.len(), 10);
    assert_eq!(found[0], "2026-03-06T16:00:00+00:00");
    assert_eq!(found[1], "2026-03-09T09:00:00+00:00");
    assert_eq!(found[9], "2026-03-10T09:00:00+00:00");
}

#[test]
fn working_hours_are_those_of_the_zone_before_and_after_a_clock_change() {
    let window = span("2026-03-28T00:00:00Z", "2026-03-30T23:00:00Z");
    let found = starts("Europe/Berlin", 480, window, &[], &[], &all_days("09:00-17:00"));
    let expected = ["2026-03-28T09:00:00+01:00", "2026-03-29T09:00:00+02:00", "2026-03-30T09:00:00+02:00"];
    assert_eq!(found, expected);
    let found = starts("America/New_York", 480, window, &[], &[], &all_days("09:00-17:00"));
    assert_eq!(found[0], "2026-03-28T09:00:00-04:00");
}

#[test]
fn a_skipped_hour_is_not_proposed_and_a_repeated_hour_is_proposed_twice() {
    let night = all_days("01:00-04:00");
    let window = span("2026-03-28T23:30:00Z", "2026-03-29T12:00:00Z");
    let found = starts("Europe/Berlin", 60, window, &[], &[], &night);
    assert_eq!(found, ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00"]);
    let window = span("2026-10-24T22:30:00Z", "2026-10-25T12:00:00Z");
    let found = starts("Europe/Berlin", 60, window, &[], &[], &night);
    let expected = [
        "2026-10-25T01:00:00+02:00",
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ];
    assert_eq!(found, expected);
    // Working hours inside the gap have no slot.
    let window = span("2026-03-28T23:30:00Z", "2026-03-29T12:00:00Z");
    assert!(starts("Europe/Berlin", 15, window, &[], &[], &all_days("02:00-03:00")).is_empty());
}

#[test]
fn slots_are_rounded_in_local_time_also_with_fractional_offsets() {
    let window = span("2026-03-02T03:40:00Z", "2026-03-02T12:00:00Z");
    let found = starts("Asia/Kathmandu", 30, window, &[], &[], &Settings::default());
    assert_eq!(found[0], "2026-03-02T09:30:00+05:45");
    let found = starts("Asia/Kolkata", 15, window, &[], &[], &Settings::default());
    assert_eq!(found[0], "2026-03-02T09:15:00+05:30");
}

#[test]
fn days_are_those_of_the_time_zone() {
    let window = span("2026-03-01T20:00:00Z", "2026-03-02T20:00:00Z");
    let found = starts("Pacific/Auckland", 240, window, &[], &[], &Settings::default());
    assert_eq!(found, ["2026-03-02T09:00:00+13:00", "2026-03-02T13:00:00+13:00"]);
    let found = starts("Pacific/Honolulu", 240, window, &[], &[], &Settings::default());
    assert_eq!(found, Vec::<String>::new(), "Sunday afternoon, and Monday until ten");
}

#[test]
fn without_free_time_there_is_no_slot() {
    let window = span("2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z");
    let busy = [span("2026-03-02T08:00:00Z", "2026-03-02T16:30:00Z")];
    assert!(starts("UTC", 60, window, &["2026-03-02T09:00:00Z"], &busy, &Settings::default()).is_empty());
}

proptest! {
    #[test]
    fn every_slot_fulfils_the_documented_rules(
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
        minutes in 5_i64..480,
        begin in 1_770_000_000_i64..1_800_000_000,
        length in 1_i64..800_000,
        busy in prop::collection::vec((0_i64..800_000, 60_i64..20_000), 0..30),
        wanted in prop::collection::vec(0_i64..800_000, 0..6),
    ) {
        let after_begin = |second: i64| DateTime::from_timestamp(begin + second, 0).unwrap();
        let window = Span { start: after_begin(0), end: after_begin(length) };
        let busy = busy.into_iter().map(|(start, long)| Span { start: after_begin(start), end: after_begin(start + long) }).collect();
        let busy = merge_spans(busy, window);
        let preferred: Vec<_> = wanted.into_iter().map(after_begin).collect();
        let settings = Settings::default();
        let zone = local_time::parse_zone(zone).unwrap();
        let search = SlotSearch { length: Duration::minutes(minutes), preferred: &preferred, window, zone };
        let slots = find_slots(&search, &busy, &settings);
        prop_assert_eq!(&slots, &find_slots(&search, &busy, &settings));
        prop_assert!(slots.len() <= 10);
        for (index, slot) in slots.iter().enumerate() {
            prop_assert_eq!(slot.span.end - slot.span.start, search.length);
            prop_assert!(window.contains(&slot.span));
            prop_assert!(busy.iter().all(|other| !other.overlaps(&slot.span)));
            if slot.preferred {
                prop_assert!(preferred.contains(&slot.span.start));
                prop_assert!(slots[..index].iter().all(|before| before.preferred));
            } else {
                let (start, end) = (slot.span.start.with_timezone(&zone), slot.span.end.with_timezone(&zone));
                prop_assert_eq!(start.date_naive(), end.date_naive());
                prop_assert!(start.weekday().num_days_from_monday() < 5);
                prop_assert!(start.time() >= settings.working_hours.from);
                prop_assert!(end.time() <= settings.working_hours.to.unwrap());
                prop_assert!(slots[..index].iter().all(|before| !before.span.overlaps(&slot.span)));
            }
        }
    }
}

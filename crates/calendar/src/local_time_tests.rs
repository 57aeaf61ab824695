use super::*;

fn local(text: &str) -> NaiveDateTime {
    text.parse().unwrap()
}

fn text(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

#[test]
fn a_skipped_time_begins_and_ends_at_the_end_of_the_gap() {
    let berlin = parse_zone("Europe/Berlin").unwrap();
    let skipped = local("2026-03-29T02:30:00");
    assert_eq!(text(first_instant(berlin, skipped)), "2026-03-29T01:00:00Z");
    assert_eq!(text(last_instant(berlin, skipped)), "2026-03-29T01:00:00Z");
    assert_eq!(text(event_instant(berlin, skipped)), "2026-03-29T01:30:00Z");
    assert_eq!(text(first_instant(berlin, local("2026-03-29T02:00:00"))), "2026-03-29T01:00:00Z");
}

#[test]
fn a_repeated_time_begins_with_the_first_and_ends_with_the_second() {
    let berlin = parse_zone("Europe/Berlin").unwrap();
    let repeated = local("2026-10-25T02:30:00");
    assert_eq!(text(first_instant(berlin, repeated)), "2026-10-25T00:30:00Z");
    assert_eq!(text(last_instant(berlin, repeated)), "2026-10-25T01:30:00Z");
    assert_eq!(text(event_instant(berlin, repeated)), "2026-10-25T00:30:00Z");
}

#[test]
fn half_hours_and_whole_days_can_be_skipped_too() {
    let lord_howe = parse_zone("Australia/Lord_Howe").unwrap();
    assert_eq!(text(first_instant(lord_howe, local("2026-10-04T02:10:00"))), "2026-10-03T15:30:00Z");
    let samoa = parse_zone("Pacific/Apia").unwrap();
    assert_eq!(text(first_instant(samoa, local("2011-12-30T09:00:00"))), "2011-12-30T10:00:00Z");
}

#[test]
fn an_unknown_zone_is_none() {
    assert_eq!(parse_zone("Mars/Olympus"), None);
    assert_eq!(parse_zone(""), None);
    assert_eq!(parse_zone("UTC"), Some(Tz::UTC));
}

//! Converts local times to instants, including those that a clock change skips or repeats.

use chrono::{DateTime, Duration, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

/// The time zone with an IANA name.
pub fn parse_zone(name: &str) -> Option<Tz> {
    name.parse().ok()
}

/// The time zone of a record. Only valid names are stored.
pub fn zone_or_utc(name: &str) -> Tz {
    parse_zone(name).unwrap_or(Tz::UTC)
}

/// The first instant at which the clock shows this time or a later one: the first of two if the time is repeated, the end
/// of the gap if it is skipped.
pub fn first_instant(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let instant = zone.from_local_datetime(&local).earliest();
    instant.map_or_else(|| gap_end(zone, local), |instant| instant.to_utc())
}

/// Like [`first_instant`], but the second of two if the time is repeated.
pub fn last_instant(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let instant = zone.from_local_datetime(&local).latest();
    instant.map_or_else(|| gap_end(zone, local), |instant| instant.to_utc())
}

/// The instant of an event at this time (RFC 5545, 3.3.5): the first of two if the time is repeated; if it is skipped, the
/// instant by the offset before the gap.
pub fn event_instant(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let in_gap = || (local - offset(zone, local - Duration::days(1))).and_utc();
    zone.from_local_datetime(&local).earliest().map_or_else(in_gap, |instant| instant.to_utc())
}

/// The offset from UTC at an instant of UTC.
fn offset(zone: Tz, utc: NaiveDateTime) -> Duration {
    Duration::seconds(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc().into())
}

/// Finds the clock change by bisection. No zone changes its clock twice within two days of a gap.
fn gap_end(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let before = offset(zone, local - Duration::days(2));
    let after = offset(zone, local + Duration::days(2));
    let (mut low, mut high) = (local - after, local - before);
    while high - low > Duration::seconds(1) {
        let middle = low + Duration::seconds((high - low).num_seconds() / 2);
        if offset(zone, middle) == before { low = middle } else { high = middle }
    }
    high.and_utc()
}

#[cfg(test)]
mod tests {
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
}

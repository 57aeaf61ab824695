//! Clocks on the wall: from local times to instants, where the zone's rules skip an hour or show one twice.

use chrono::{DateTime, Duration, MappedLocalTime, NaiveDateTime, Offset, TimeZone, Utc};
use chrono_tz::Tz;

/// The zone of an IANA name.
pub fn named(name: &str) -> Option<Tz> {
    name.parse().ok()
}

/// The first instant at which the clock shows this time or a later one: where the clock skips the time, the end of the
/// gap; where it shows it twice, the first of both.
pub fn opening(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(instant, _) => instant.to_utc(),
        MappedLocalTime::None => gap_end(zone, local),
    }
}

/// The last instant at which the clock gets to this time: as [`opening`], but the second of two.
pub fn closing(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(_, instant) => instant.to_utc(),
        MappedLocalTime::None => gap_end(zone, local),
    }
}

/// The instant that an event at this time means: the first of two, and in a gap what the clock would have shown without
/// it (RFC 5545, 3.3.5).
pub fn meant(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    match zone.from_local_datetime(&local) {
        MappedLocalTime::Single(instant) | MappedLocalTime::Ambiguous(instant, _) => instant.to_utc(),
        MappedLocalTime::None => (local - offset(zone, local - Duration::days(1))).and_utc(),
    }
}

/// How far the clock is ahead of UTC, at an instant of UTC.
fn offset(zone: Tz, utc: NaiveDateTime) -> Duration {
    Duration::seconds(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc().into())
}

/// No zone has changed its clock twice within two days of a gap, so the change lies between the two readings of the time.
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

    fn shown(instant: DateTime<Utc>) -> String {
        instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
    }

    #[test]
    fn where_the_clock_skips_an_hour_it_opens_and_closes_at_the_end_of_the_gap() {
        let berlin = named("Europe/Berlin").unwrap();
        let skipped = local("2026-03-29T02:30:00");
        assert_eq!(shown(opening(berlin, skipped)), "2026-03-29T01:00:00Z");
        assert_eq!(shown(closing(berlin, skipped)), "2026-03-29T01:00:00Z");
        assert_eq!(shown(meant(berlin, skipped)), "2026-03-29T01:30:00Z");
        assert_eq!(shown(opening(berlin, local("2026-03-29T02:00:00"))), "2026-03-29T01:00:00Z");
    }

    #[test]
    fn where_the_clock_shows_an_hour_twice_it_opens_with_the_first_and_closes_with_the_second() {
        let berlin = named("Europe/Berlin").unwrap();
        let twice = local("2026-10-25T02:30:00");
        assert_eq!(shown(opening(berlin, twice)), "2026-10-25T00:30:00Z");
        assert_eq!(shown(closing(berlin, twice)), "2026-10-25T01:30:00Z");
        assert_eq!(shown(meant(berlin, twice)), "2026-10-25T00:30:00Z");
    }

    #[test]
    fn half_hours_and_whole_days_are_skipped_too() {
        let lord_howe = named("Australia/Lord_Howe").unwrap();
        assert_eq!(shown(opening(lord_howe, local("2026-10-04T02:10:00"))), "2026-10-03T15:30:00Z");
        let samoa = named("Pacific/Apia").unwrap();
        assert_eq!(shown(opening(samoa, local("2011-12-30T09:00:00"))), "2011-12-30T10:00:00Z");
    }

    #[test]
    fn a_zone_that_does_not_exist_is_none() {
        assert_eq!(named("Mars/Olympus"), None);
        assert_eq!(named(""), None);
        assert_eq!(named("UTC"), Some(Tz::UTC));
    }
}

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

/// The first instant at which the clock shows this time or a later one: the first of two if the time is repeated, the
/// end of the gap if it is skipped.
pub fn first_instant(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let instant = zone.from_local_datetime(&local).earliest();
    instant.map_or_else(|| gap_end(zone, local), |instant| instant.to_utc())
}

/// Like [`first_instant`], but the second of two if the time is repeated.
pub fn last_instant(zone: Tz, local: NaiveDateTime) -> DateTime<Utc> {
    let instant = zone.from_local_datetime(&local).latest();
    instant.map_or_else(|| gap_end(zone, local), |instant| instant.to_utc())
}

/// The instant of an event at this time (RFC 5545, 3.3.5): the first of two if the time is repeated; if it is skipped,
/// the instant by the offset before the gap.
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
#[path = "local_time_tests.rs"]
mod tests;

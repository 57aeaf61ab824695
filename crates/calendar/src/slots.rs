//! Which times are proposed: free preferred times in their order, then the earliest others within working hours.

use chrono::{DateTime, Duration, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::Tz;

use crate::busy::Span;
use crate::settings::Settings;
use crate::zone;

/// As many as are proposed.
const MOST: usize = 10;

/// What is looked for.
#[derive(Debug)]
pub struct Wish<'a> {
    pub length: Duration,
    pub preferred: &'a [DateTime<Utc>],
    /// Nothing begins before it, or ends after it.
    pub window: Span,
    pub zone: Tz,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub span: Span,
    pub preferred: bool,
}

/// The best first. `busy` is merged.
pub fn find(wish: &Wish<'_>, busy: &[Span], settings: &Settings) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for start in wish.preferred {
        let span = Span { start: *start, end: *start + wish.length };
        let is_new = slots.iter().all(|slot| slot.span != span);
        if is_new && wish.window.holds(&span) && blocking(&span, busy).is_none() && slots.len() < MOST {
            slots.push(Slot { span, preferred: true });
        }
    }
    let first = wish.window.start.with_timezone(&wish.zone).date_naive();
    // A day before: working hours may reach over midnight of UTC, and clocks may be changed at midnight.
    let days = first.pred_opt().unwrap_or(first).iter_days();
    for day in days {
        let opens = zone::opening(wish.zone, day.and_time(settings.working_hours.from));
        if slots.len() >= MOST || opens >= wish.window.end {
            break;
        }
        if settings.days.iter().any(|of| of.0 == chrono::Datelike::weekday(&day)) {
            let closes = zone::closing(wish.zone, end_of(day, settings.working_hours.to));
            fill(Span { start: opens, end: closes }, wish, busy, &mut slots);
        }
    }
    slots
}

fn end_of(day: chrono::NaiveDate, to: Option<NaiveTime>) -> NaiveDateTime {
    match to {
        Some(time) => day.and_time(time),
        None => day.succ_opt().unwrap_or(day).and_time(NaiveTime::MIN),
    }
}

/// Adds what fits into one day, one after the other.
fn fill(hours: Span, wish: &Wish<'_>, busy: &[Span], slots: &mut Vec<Slot>) {
    let end = hours.end.min(wish.window.end);
    let mut start = round_up(hours.start.max(wish.window.start), wish);
    while start + wish.length <= end && slots.len() < MOST {
        let span = Span { start, end: start + wish.length };
        let taken = slots.iter().map(|slot| slot.span).find(|other| other.overlaps(&span));
        start = match blocking(&span, busy).or(taken) {
            Some(other) => round_up(other.end, wish),
            None => {
                slots.push(Slot { span, preferred: false });
                round_up(span.end, wish)
            }
        };
    }
}

/// What stands in the way.
fn blocking(span: &Span, busy: &[Span]) -> Option<Span> {
    let after = busy.partition_point(|other| other.end <= span.start);
    busy.get(after).copied().filter(|other| other.overlaps(span))
}

/// Events begin at full and half hours of the clock on the wall, short ones also at the quarters.
fn round_up(instant: DateTime<Utc>, wish: &Wish<'_>) -> DateTime<Utc> {
    let step = if wish.length < Duration::minutes(30) { 900 } else { 1800 };
    let ahead = i64::from(wish.zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc());
    let up = if instant.nanosecond() > 0 { 1 } else { 0 };
    let shown = instant.timestamp() + up + ahead;
    let rounded = shown + (step - shown.rem_euclid(step)) % step;
    DateTime::from_timestamp(rounded - ahead, 0).unwrap_or(instant)
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;

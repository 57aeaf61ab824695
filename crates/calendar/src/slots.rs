//! Finds the slots to propose: free preferred times in their order, then the earliest other times in working hours.

use chrono::{DateTime, Duration, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike, Utc};
use chrono_tz::Tz;

use crate::local_time;
use crate::settings::Settings;
use crate::span::Span;

const MAX_SLOTS: usize = 10;

/// The requirements for the slots.
#[derive(Debug)]
pub struct SlotSearch<'a> {
    pub length: Duration,
    pub preferred: &'a [DateTime<Utc>],
    /// Contains every slot.
    pub window: Span,
    pub zone: Tz,
}

/// A free time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub span: Span,
    pub preferred: bool,
}

/// The slots, best first. `busy` must be merged.
pub fn find_slots(search: &SlotSearch<'_>, busy: &[Span], settings: &Settings) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for start in search.preferred {
        let span = Span { start: *start, end: *start + search.length };
        let is_new = slots.iter().all(|slot| slot.span != span);
        if is_new
            && search.window.contains(&span)
            && first_conflict(&span, busy).is_none()
            && slots.len() < MAX_SLOTS
        {
            slots.push(Slot { span, preferred: true });
        }
    }
    let first = search.window.start.with_timezone(&search.zone).date_naive();
    // Starts a day early: the window may begin in the working hours of the day before, or at a clock change.
    let days = first.pred_opt().unwrap_or(first).iter_days();
    for day in days {
        let opens = local_time::first_instant(search.zone, day.and_time(settings.working_hours.from));
        if slots.len() >= MAX_SLOTS || opens >= search.window.end {
            break;
        }
        if settings.days.iter().any(|of| of.0 == chrono::Datelike::weekday(&day)) {
            let closes = local_time::last_instant(search.zone, end_of(day, settings.working_hours.to));
            add_slots_of_day(Span { start: opens, end: closes }, search, busy, &mut slots);
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

/// Adds the free slots of one day, one after the other.
fn add_slots_of_day(hours: Span, search: &SlotSearch<'_>, busy: &[Span], slots: &mut Vec<Slot>) {
    let end = hours.end.min(search.window.end);
    let mut start = round_up(hours.start.max(search.window.start), search);
    while start + search.length <= end && slots.len() < MAX_SLOTS {
        let span = Span { start, end: start + search.length };
        let proposed = slots.iter().map(|slot| slot.span).find(|other| other.overlaps(&span));
        start = match first_conflict(&span, busy).or(proposed) {
            Some(other) => round_up(other.end, search),
            None => {
                slots.push(Slot { span, preferred: false });
                round_up(span.end, search)
            }
        };
    }
}

/// The first busy span that overlaps.
fn first_conflict(span: &Span, busy: &[Span]) -> Option<Span> {
    let after = busy.partition_point(|other| other.end <= span.start);
    busy.get(after).copied().filter(|other| other.overlaps(span))
}

/// Rounds up to a full or half hour of local time, or to a quarter for slots of less than 30 minutes.
fn round_up(instant: DateTime<Utc>, search: &SlotSearch<'_>) -> DateTime<Utc> {
    let step = if search.length < Duration::minutes(30) { 900 } else { 1800 };
    let offset =
        i64::from(search.zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc());
    let up = i64::from(instant.nanosecond() > 0);
    let local = instant.timestamp() + up + offset;
    let rounded = local + (step - local.rem_euclid(step)) % step;
    DateTime::from_timestamp(rounded - offset, 0).unwrap_or(instant)
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;

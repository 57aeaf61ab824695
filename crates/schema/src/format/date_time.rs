//! Dates, times and durations of RFC 3339, and the forms of ISO 8601 that ajv-formats adds.

use std::cmp::Ordering;

pub fn is_date(text: &str) -> bool {
    parse_date(text.as_bytes()).is_some()
}

fn parse_date(text: &[u8]) -> Option<(i32, i32, i32)> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let year = two_digits(*y1, *y2)? * 100 + two_digits(*y3, *y4)?;
    let (month, day) = (two_digits(*m1, *m2)?, two_digits(*d1, *d2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some((year, month, day))
}

fn two_digits(tens: u8, ones: u8) -> Option<i32> {
    let valid = tens.is_ascii_digit() && ones.is_ascii_digit();
    valid.then(|| i32::from(tens - b'0') * 10 + i32::from(ones - b'0'))
}

pub fn is_time(text: &str) -> bool {
    Time::parse(text.as_bytes()).is_some_and(|time| time.is_rfc_3339() && time.is_valid())
}

pub fn is_iso_time(text: &str) -> bool {
    Time::parse(text.as_bytes()).is_some_and(|time| time.is_valid())
}

pub fn is_date_time(text: &str) -> bool {
    split_date_time(text).is_some_and(|(date, time)| is_date(date) && is_time(time))
}

pub fn is_iso_date_time(text: &str) -> bool {
    split_date_time(text).is_some_and(|(date, time)| is_date(date) && is_iso_time(time))
}

/// Splits a date and time at a `t` or white space.
fn split_date_time(text: &str) -> Option<(&str, &str)> {
    let (date, rest) = text.split_at_checked(10)?;
    if let [b't' | b'T' | b' ', ..] = rest.as_bytes() {
        return Some((date, rest.get(1..)?));
    }
    let mut rest = rest.chars();
    let separator = rest.next()?;
    jsonschema_regex::is_ecma_whitespace(separator).then_some((date, rest.as_str()))
}

#[derive(Debug, Clone, Copy)]
struct Time<'t> {
    hour: i32,
    minute: i32,
    second: i32,
    fraction: &'t [u8],
    /// As written: nothing, `Z`, `+01`, `+0100` or `+01:00`.
    zone: &'t [u8],
    /// Hours and minutes of the zone, without its sign.
    offset: (i32, i32),
}

impl<'t> Time<'t> {
    fn parse(text: &'t [u8]) -> Option<Self> {
        let (head, mut rest) = text.split_at_checked(8)?;
        let [h1, h2, b':', m1, m2, b':', s1, s2] = head else { return None };
        let (hour, minute, second) = (two_digits(*h1, *h2)?, two_digits(*m1, *m2)?, two_digits(*s1, *s2)?);
        let mut fraction: &[u8] = &[];
        if let [b'.', after @ ..] = rest {
            let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            (fraction, rest) = after.split_at_checked(digits)?;
        }
        let offset = match rest {
            [] | [b'z' | b'Z'] => (0, 0),
            [b'+' | b'-', h1, h2] => (two_digits(*h1, *h2)?, 0),
            [b'+' | b'-', h1, h2, m1, m2] | [b'+' | b'-', h1, h2, b':', m1, m2] => {
                (two_digits(*h1, *h2)?, two_digits(*m1, *m2)?)
            }
            _ => return None,
        };
        Some(Self { hour, minute, second, fraction, zone: rest, offset })
    }

    /// RFC 3339 requires a zone, and an offset with a colon.
    const fn is_rfc_3339(self) -> bool {
        matches!(self.zone, [_] | [_, _, _, b':', _, _])
    }

    /// Minutes since midnight UTC, which may be on another day.
    fn minute_in_utc(self) -> i32 {
        let offset = self.offset.0 * 60 + self.offset.1;
        let offset = if self.zone.starts_with(b"-") { -offset } else { offset };
        self.hour * 60 + self.minute - offset
    }

    fn is_valid(self) -> bool {
        let (hours, minutes) = self.offset;
        if hours > 23 || minutes > 59 || self.hour > 23 || self.minute > 59 {
            return false;
        }
        // A leap second is the last second of a day in UTC.
        self.second < 60 || (self.second == 60 && self.minute_in_utc().rem_euclid(24 * 60) == 24 * 60 - 1)
    }

    /// Milliseconds since midnight UTC, if JavaScript's `Date` can parse the time. A time without a zone counts as UTC.
    fn millis(self) -> Option<i64> {
        let all = i64::from(self.minute_in_utc()) * 60_000 + i64::from(self.second) * 1000;
        let part = self.fraction.iter().chain(b"000").take(3);
        let part = part.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        let has_minutes = self.zone.len() != 3;
        (has_minutes && self.second < 60 && self.minute < 60 && self.hour < 24).then_some(all + part)
    }
}

pub fn compare_times(left: &str, right: &str) -> Option<Ordering> {
    let millis = |text: &str| Time::parse(text.as_bytes()).and_then(Time::millis);
    Some(millis(left)?.cmp(&millis(right)?))
}

pub fn compare_date_times(left: &str, right: &str) -> Option<Ordering> {
    Some(epoch_millis(left)?.cmp(&epoch_millis(right)?))
}

pub fn compare_iso_times(left: &str, right: &str) -> Option<Ordering> {
    let (left, right) = (Time::parse(left.as_bytes())?, Time::parse(right.as_bytes())?);
    let key = |time: Time<'_>| (time.hour, time.minute, time.second);
    Some(key(left).cmp(&key(right)).then_with(|| left.fraction.cmp(right.fraction)))
}

pub fn compare_iso_date_times(left: &str, right: &str) -> Option<Ordering> {
    let ((date, time), (other_date, other_time)) = (first_parts(left), first_parts(right));
    if date.is_empty() || other_date.is_empty() {
        return None;
    }
    match date.cmp(other_date) {
        Ordering::Equal => compare_times(time, other_time),
        different => Some(different),
    }
}

/// The date and the time of a text. Ajv also compares texts that are no dates.
fn first_parts(text: &str) -> (&str, &str) {
    let separator =
        |character: char| matches!(character, 't' | 'T') || jsonschema_regex::is_ecma_whitespace(character);
    let mut parts = text.split(separator);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// Milliseconds since 1970. Zero counts as no time, because Ajv tests the number for truth.
fn epoch_millis(text: &str) -> Option<i64> {
    // A limit may be a date alone: its midnight in UTC.
    let (day, time) = if text.len() == 10 { (text, "00:00:00Z") } else { split_date_time(text)? };
    let (year, month, day) = parse_date(day.as_bytes())?;
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let millis = days * 86_400_000 + Time::parse(time.as_bytes())?.millis()?;
    (millis != 0).then_some(millis)
}

/// `P` with years, months and days, then `T` with hours, minutes and seconds; or weeks alone. A unit between two others
/// must not be omitted.
pub fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P').filter(|rest| !rest.is_empty()) else { return false };
    if skip_units(rest, "W") == Some("") {
        return true;
    }
    match skip_units(rest, "YMD") {
        Some("") => true,
        Some(rest) => rest.strip_prefix('T').is_some_and(|time| {
            time.starts_with(|first: char| first.is_ascii_digit()) && skip_units(time, "HMS") == Some("")
        }),
        None => false,
    }
}

/// Skips numbers with these units. The first may be any of them, the others must follow in order.
fn skip_units<'t>(mut text: &'t str, mut names: &str) -> Option<&'t str> {
    let mut is_first = true;
    loop {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Some(text);
        }
        let unit = text.get(digits..)?.chars().next()?;
        let at = names.find(unit).filter(|at| is_first || *at == 0)?;
        is_first = false;
        names = names.get(at + 1..)?;
        text = text.get(digits + 1..)?;
    }
}

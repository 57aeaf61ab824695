//! Numbers, times and JSON, as people read them.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

/// With separators: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration: `0.4 ms`, `41 ms`, `1.9 s`, `2 min 5 s`.
pub fn duration(ms: f64) -> String {
    match ms {
        _ if ms < 9.95 && ms.fract() != 0.0 => format!("{ms:.1} ms"),
        _ if ms < 999.5 => format!("{ms:.0} ms"),
        _ if ms < 59_950.0 => format!("{:.1} s", ms / 1000.0),
        _ => span(ms as i64),
    }
}

/// A long time, to its second largest unit: `5 s`, `2 min 5 s`, `3 h 12 min`, `4 d 1 h`.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// How long ago, in one unit: `now`, `12 s ago`, `4 min ago`.
pub fn ago(ms: i64) -> String {
    let seconds = ms / 1000;
    match seconds {
        ..=0 => "now".to_owned(),
        1..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// A share of a whole: `0.3 %`; nothing is `0`.
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

/// `412 bytes`, `12 KB`, `3.4 MB`.
pub fn bytes(size: u64) -> String {
    match size {
        0..1000 => format!("{size} bytes"),
        1000..1_000_000 => format!("{:.0} KB", size as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size as f64 / 1e6),
        _ => format!("{:.1} GB", size as f64 / 1e9),
    }
}

/// `one tool`, `12 tools`.
pub fn plural(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", count(number)) }
}

/// Milliseconds since 1970 in RFC 3339.
pub fn iso_time(ms: i64) -> String {
    DateTime::<Utc>::from_timestamp_millis(ms)
        .map(|time| time.to_rfc3339_opts(SecondsFormat::Millis, true))
        .unwrap_or_default()
}

/// Milliseconds since 1970 as date and time of UTC.
pub fn utc_time(ms: i64) -> String {
    DateTime::<Utc>::from_timestamp_millis(ms)
        .map(|time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_default()
}

/// Indented JSON.
pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// At most `max` characters; a shortened text ends with `…`.
pub fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text as one part of a path or a value of a query.
pub fn url_part(text: &str) -> String {
    askama::filters::urlencode_strict(text).map(|part| part.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_as_people_write_them() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.42, 41.2, 999.6, 1900.0, 125_000.0].map(duration),
            ["0 ms", "0.4 ms", "41 ms", "1.0 s", "1.9 s", "2 min 5 s"]
        );
        assert_eq!([11_520_000, 349_200_000].map(span), ["3 h 12 min", "4 d 1 h"]);
        assert_eq!([-5, 12_000, 250_000].map(ago), ["now", "12 s ago", "4 min ago"]);
        assert_eq!((percent(3, 1000), percent(0, 0)), ("0.3 %".to_owned(), "0".to_owned()));
        assert_eq!([412, 12_345, 3_400_000].map(bytes), ["412 bytes", "12 KB", "3.4 MB"]);
        assert_eq!(
            (plural(1, "tool"), plural(1200, "tool")),
            ("1 tool".to_owned(), "1,200 tools".to_owned())
        );
        assert_eq!(utc_time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(iso_time(1), "1970-01-01T00:00:00.001Z");
        assert_eq!(iso_time(i64::MAX), "");
        assert_eq!((shorten("añb", 2), shorten("ab", 2)), ("añ…".to_owned(), "ab".to_owned()));
        assert_eq!(url_part("a/b c&d"), "a%2Fb%20c%26d");
    }
}

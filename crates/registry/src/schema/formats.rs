//! The formats that the validator library lacks, as ajv-formats defines them.
//! `password` and `binary` promise nothing about the text; `int32` and the like are about numbers, not strings.

use jsonschema::ValidationOptions;

/// Adds the missing formats.
pub(super) fn register(options: ValidationOptions<'static>) -> ValidationOptions<'static> {
    options
        .with_format("url", is_url)
        .with_format("byte", is_base64)
        .with_format("iso-time", is_iso_time)
        .with_format("iso-date-time", is_iso_date_time)
}

fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let is_named = host.contains('.') && !host.starts_with('.') && !host.ends_with('.');
    let has_space = text.chars().any(char::is_whitespace);
    matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https" | "ftp") && is_named && !has_space
}

fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_letter)
}

/// A time whose zone may be missing.
fn is_iso_time(text: &str) -> bool {
    let (clock, zone) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let numbers: Option<Vec<u8>> = clock.split(':').map(two_digits).collect();
    let in_range = match numbers.as_deref() {
        Some([23, 59, 60]) => true,
        Some([hour, minute, second]) => *hour < 24 && *minute < 60 && *second < 60,
        _ => false,
    };
    in_range && !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit()) && is_zone(zone)
}

fn is_zone(zone: &str) -> bool {
    let Some(offset) = zone.strip_prefix(['+', '-']) else { return matches!(zone, "" | "Z" | "z") };
    let (hours, minutes) = match offset.len() {
        2 => (offset, "00"),
        4 => offset.split_at(2),
        _ => offset.split_once(':').unwrap_or(("", "")),
    };
    two_digits(hours).is_some_and(|hours| hours < 24)
        && two_digits(minutes).is_some_and(|minutes| minutes < 60)
}

fn two_digits(text: &str) -> Option<u8> {
    (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn is_iso_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't', ' ']) else { return false };
    is_date(date) && is_iso_time(time)
}

fn is_date(date: &str) -> bool {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let is_year = year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit());
    let year: u32 = year.parse().unwrap_or(0);
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match two_digits(month) {
        Some(2) => 28 + u8::from(leap),
        Some(4 | 6 | 9 | 11) => 30,
        Some(1..=12) => 31,
        _ => 0,
    };
    is_year && two_digits(day).is_some_and(|day| (1..=days).contains(&day))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Case<'a> = (fn(&str) -> bool, &'a [&'a str], &'a [&'a str]);

    #[test]
    fn formats_agree_with_their_definitions() {
        let cases: &[Case<'_>] = &[
            (
                is_url,
                &["https://example.com/a?b", "ftp://a.b.co"],
                &["example.com", "mailto:a@b.c", "http://nodot"],
            ),
            (is_base64, &["", "QUJD", "QUI="], &["QUI", "Q===", "Q!=="]),
            (
                is_iso_time,
                &["10:00:00", "10:00:00.5Z", "10:00:00+01", "10:00:00-0130"],
                &["25:00:00", "10:00", "10:00:00+1"],
            ),
            (
                is_iso_date_time,
                &["2024-02-29T10:00:00", "2026-01-01 10:00:00Z"],
                &["2026-02-29T10:00:00", "2026-01-01"],
            ),
        ];
        for (format, good, bad) in cases {
            for text in *good {
                assert!(format(text), "{text}");
            }
            for text in *bad {
                assert!(!format(text), "{text}");
            }
        }
    }
}

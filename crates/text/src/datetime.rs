//! `text.formatDatetime`: formats an instant for a reader in their time zone. The time zone database is compiled in, so
//! that the same arguments give the same result on every machine.

use std::sync::LazyLock;

use jiff::tz::{Offset, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use toolwright_capabilities::CapabilityError;

use crate::invalid;
use crate::locale::Locale;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

pub fn format_datetime(options: &Value) -> Result<Value, CapabilityError> {
    let member = |name: &str| {
        let text = options.get(name).and_then(Value::as_str);
        text.ok_or_else(|| invalid(&format!("`{name}` must be a string")))
    };
    let zone = member("timezone")?;
    let zone = ZONES.get(zone).map_err(|_| {
        CapabilityError::new(
            "INVALID_TIMEZONE",
            format!("`timezone` is {zone:?}: use an IANA name such as Europe/Berlin"),
        )
    })?;
    let instant: Timestamp = member("instant")?.parse().map_err(|_| {
        invalid("`instant` must be an RFC 3339 time with an offset, such as 2026-03-01T14:05:00Z, in the years 0 to 9999")
    })?;
    let locale = Locale::named(member("locale")?).ok_or_else(|| {
        invalid(&format!("`locale` must be one of {}", Locale::names().collect::<Vec<_>>().join(", ")))
    })?;
    let at = instant.to_zoned(zone);
    let iso = format_iso(&at);
    let formatted = match member("style")? {
        "iso" => iso.clone(),
        "date" => locale.date(&at),
        "time" => locale.time(&at),
        "short" => locale.short(&at),
        "long" => locale.long(&at, &zone_abbreviation(&at)),
        "spoken" => locale.spoken(&at),
        _ => return Err(invalid("`style` must be iso, date, time, short, long or spoken")),
    };
    Ok(json!({
        "formatted": formatted,
        "iso": iso,
        "timezone": at.time_zone().iana_name().unwrap_or("UTC"),
        "utcOffset": format_offset(at.offset()),
        "weekday": locale.weekday(&at),
    }))
}

/// RFC 3339 with seconds and a numeric offset; fractional seconds only if they are not zero.
fn format_iso(at: &Zoned) -> String {
    let fraction = match at.subsec_nanosecond() {
        0 => String::new(),
        nanoseconds => format!(".{nanoseconds:09}").trim_end_matches('0').to_owned(),
    };
    let (year, month, day) = (at.year(), at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    let offset = format_offset(at.offset());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{offset}")
}

/// `+01:00`; with seconds where the zone used local mean time.
fn format_offset(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let all = seconds.unsigned_abs();
    let (hours, minutes, rest) = (all / 3600, all / 60 % 60, all % 60);
    match rest {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        rest => format!("{sign}{hours:02}:{minutes:02}:{rest:02}"),
    }
}

/// The zone's abbreviation, or its offset if it has none.
fn zone_abbreviation(at: &Zoned) -> String {
    let info = at.time_zone().to_offset_info(at.timestamp());
    let abbreviation = info.abbreviation();
    if abbreviation.starts_with(|first: char| first.is_alphabetic()) {
        abbreviation.to_owned()
    } else {
        format_offset(at.offset())
    }
}

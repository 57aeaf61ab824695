//! `text.formatDatetime`: formats an instant for a reader in their time zone. The time zone database is compiled in, so
//! that the same arguments give the same result on every machine.

use std::sync::LazyLock;

use jiff::tz::TimeZoneDatabase;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use toolwright_capabilities::CapabilityError;

use crate::locale::Locale;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

pub fn format_datetime(options: &Value) -> Result<Value, CapabilityError> {
    let member = |name: &str| {
        let text = options.get(name).and_then(Value::as_str);
        text.ok_or_else(|| CapabilityError::invalid(format!("`{name}` must be a string")))
    };
    let zone = member("timezone")?;
    let zone = ZONES.get(zone).map_err(|_| {
        CapabilityError::new(
            "INVALID_TIMEZONE",
            format!("`timezone` is {zone:?}: use an IANA name such as Europe/Berlin"),
        )
    })?;
    let instant: Timestamp = member("instant")?.parse().map_err(|_| {
        CapabilityError::invalid("`instant` must be an RFC 3339 time with an offset, such as 2026-03-01T14:05:00Z, in the years 0 to 9999")
    })?;
    let locale = Locale::from_name(member("locale")?).ok_or_else(|| {
        CapabilityError::invalid(format!(
            "`locale` must be one of {}",
            Locale::names().collect::<Vec<_>>().join(", ")
        ))
    })?;
    let at = instant.to_zoned(zone);
    // Fractional seconds only if they are not zero; an offset with seconds where the zone used local mean time.
    let iso = at.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string();
    let offset = at.strftime("%:z").to_string();
    let formatted = match member("style")? {
        "iso" => iso.clone(),
        "date" => locale.date(&at),
        "time" => locale.time(&at),
        "short" => locale.short(&at),
        "long" => locale.long(&at, zone_abbreviation(&at).as_deref().unwrap_or(&offset)),
        "spoken" => locale.spoken(&at),
        _ => return Err(CapabilityError::invalid("`style` must be iso, date, time, short, long or spoken")),
    };
    Ok(json!({
        "formatted": formatted,
        "iso": iso,
        "timezone": at.time_zone().iana_name().unwrap_or("UTC"),
        "utcOffset": offset,
        "weekday": locale.weekday(&at),
    }))
}

/// The zone's abbreviation, if it has one.
fn zone_abbreviation(at: &Zoned) -> Option<String> {
    let info = at.time_zone().to_offset_info(at.timestamp());
    Some(info.abbreviation().to_owned()).filter(|text| text.starts_with(char::is_alphabetic))
}

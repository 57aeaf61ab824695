//! `formatDatetime`: the documented table, time zones and their edge cases.

use serde_json::{Value, json};

use super::call;

const LOCALES: [&str; 5] = ["en-US", "en-GB", "de-DE", "fr-FR", "es-ES"];

async fn format_value(instant: &str, timezone: &str, style: &str, locale: &str) -> Value {
    let options = json!({ "instant": instant, "timezone": timezone, "style": style, "locale": locale });
    call("formatDatetime", vec![options]).await.unwrap()
}

async fn format_text(instant: &str, timezone: &str, style: &str, locale: &str) -> String {
    format_value(instant, timezone, style, locale).await["formatted"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_documented_table_matches_the_output() {
    let documented = include_str!("../../../../docs/reference/capabilities.md");
    let rows = documented.lines().skip_while(|line| !line.starts_with("| style | en-US"));
    let mut count = 0;
    for row in rows.skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let style = cells[0].trim_matches('`');
        for (locale, cell) in LOCALES.iter().zip(&cells[1..]) {
            let expected = if *cell == "the same" { cells[1] } else { cell };
            assert_eq!(format_text("2026-03-01T14:05:00Z", "Europe/Berlin", style, locale).await, expected);
            count += 1;
        }
    }
    assert_eq!(count, 30);
}

#[tokio::test]
async fn the_result_has_the_text_and_its_parts() {
    let expected = json!({
        "formatted": "domingo 1 de marzo a las 15:05", "iso": "2026-03-01T15:05:00+01:00", "timezone": "Europe/Berlin",
        "utcOffset": "+01:00", "weekday": "domingo"
    });
    assert_eq!(format_value("2026-03-01T14:05:00Z", "Europe/Berlin", "spoken", "es-ES").await, expected);
    let iso = async |instant: &str, zone: &str| {
        format_value(instant, zone, "iso", "en-US").await["iso"].as_str().unwrap().to_owned()
    };
    assert_eq!(iso("2026-03-01T14:05:00Z", "UTC").await, "2026-03-01T14:05:00+00:00");
    assert_eq!(iso("2026-03-01T14:05:00.250+02:00", "UTC").await, "2026-03-01T12:05:00.25+00:00");
    assert_eq!(iso("2026-03-01T14:05:00.000Z", "Asia/Kathmandu").await, "2026-03-01T19:50:00+05:45");
    assert_eq!(iso("2026-03-01T14:05:00Z", "America/New_York").await, "2026-03-01T09:05:00-05:00");
    assert_eq!(iso("0001-06-01T00:00:00Z", "UTC").await, "0001-06-01T00:00:00+00:00");
}

#[tokio::test]
async fn daylight_saving_time_is_applied() {
    let berlin = async |instant: &str| format_text(instant, "Europe/Berlin", "long", "en-GB").await;
    assert_eq!(berlin("2026-03-29T00:59:59Z").await, "Sunday 29 March 2026 at 01:59 CET");
    assert_eq!(berlin("2026-03-29T01:00:00Z").await, "Sunday 29 March 2026 at 03:00 CEST");
    // The repeated hour.
    assert_eq!(berlin("2026-10-25T00:30:00Z").await, "Sunday 25 October 2026 at 02:30 CEST");
    assert_eq!(berlin("2026-10-25T01:30:00Z").await, "Sunday 25 October 2026 at 02:30 CET");
    // A different day and year than in UTC, a daylight saving shift of 30 minutes, and a skipped day.
    assert_eq!(
        format_text("2026-12-31T23:30:00Z", "Pacific/Auckland", "date", "en-US").await,
        "January 1, 2027"
    );
    assert_eq!(
        format_value("2026-01-15T00:00:00Z", "Australia/Lord_Howe", "iso", "en-US").await["utcOffset"],
        "+11:00"
    );
    assert_eq!(
        format_value("2026-07-15T00:00:00Z", "Australia/Lord_Howe", "iso", "en-US").await["utcOffset"],
        "+10:30"
    );
    assert_eq!(
        format_text("2011-12-30T10:00:00Z", "Pacific/Apia", "date", "en-US").await,
        "December 31, 2011"
    );
    assert_eq!(
        format_value("1880-01-01T00:00:00Z", "Europe/Berlin", "iso", "en-US").await["utcOffset"],
        "+00:53:28"
    );
}

#[tokio::test]
async fn hours_follow_the_locale() {
    let at =
        async |instant: &str, style: &str, locale: &str| format_text(instant, "UTC", style, locale).await;
    assert_eq!(at("2026-03-01T00:05:00Z", "time", "en-US").await, "12:05 AM");
    assert_eq!(at("2026-03-01T12:00:00Z", "time", "en-US").await, "12:00 PM");
    assert_eq!(at("2026-03-01T09:05:00Z", "time", "en-GB").await, "09:05");
    assert_eq!(at("2026-03-01T09:05:00Z", "time", "es-ES").await, "9:05");
    assert_eq!(at("2026-03-01T01:05:00Z", "spoken", "es-ES").await, "domingo 1 de marzo a la 1:05");
    assert_eq!(at("2026-12-31T23:59:59Z", "spoken", "de-DE").await, "Donnerstag, 31. Dezember um 23:59");
}

#[tokio::test]
async fn a_zone_without_an_abbreviation_shows_its_offset() {
    let long = async |zone: &str| format_text("2026-03-01T14:05:00Z", zone, "long", "en-GB").await;
    assert_eq!(long("America/Sao_Paulo").await, "Sunday 1 March 2026 at 11:05 -03:00");
    assert_eq!(long("Asia/Kathmandu").await, "Sunday 1 March 2026 at 19:50 +05:45");
    assert_eq!(long("UTC").await, "Sunday 1 March 2026 at 14:05 UTC");
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let code = async |instant: &str, zone: &str, style: &str, locale: &str| {
        let options = json!({ "instant": instant, "timezone": zone, "style": style, "locale": locale });
        call("formatDatetime", vec![options]).await.unwrap_err().code
    };
    for zone in ["Berlin", "", "Europe/Berlin ", "../etc/passwd", "+01:00", "CET-1", "Mars/Base"] {
        assert_eq!(code("2026-03-01T14:05:00Z", zone, "iso", "en-US").await, "INVALID_TIMEZONE", "{zone}");
    }
    for instant in
        ["", "tomorrow", "2026-03-01", "2026-03-01T14:05:00", "2026-02-30T00:00:00Z", "2026-03-01T25:00:00Z"]
    {
        assert_eq!(code(instant, "UTC", "iso", "en-US").await, "INVALID_ARGUMENT", "{instant}");
    }
    assert_eq!(code("2026-03-01T14:05:00Z", "UTC", "full", "en-US").await, "INVALID_ARGUMENT");
    assert_eq!(code("2026-03-01T14:05:00Z", "UTC", "iso", "it-IT").await, "INVALID_ARGUMENT");
    assert_eq!(call("formatDatetime", vec![]).await.unwrap_err().code, "INVALID_ARGUMENT");
}

use serde_json::{Value, json};

use super::Settings;

fn parse(value: Value) -> Result<Settings, String> {
    let settings: Settings = serde_json::from_value(value).map_err(|error| error.to_string())?;
    settings.check().map(|()| settings)
}

#[test]
fn defaults_are_valid_and_round_trip() {
    let settings = Settings::default();
    settings.check().unwrap();
    let written = serde_json::to_value(&settings).unwrap();
    assert_eq!(written["working_hours"], "09:00-17:00");
    assert_eq!(written["days"], json!(["mon", "tue", "wed", "thu", "fri"]));
    assert_eq!(parse(written).unwrap(), settings);
}

#[test]
fn invalid_settings_are_refused_with_a_fix() {
    let zoom = json!({ "account_id": "a", "client_id": "c" });
    for (invalid, expected) in [
        (json!({ "working_hours": "17:00-09:00" }), "with the later time last"),
        (json!({ "working_hours": "nine to five" }), "09:00-17:00"),
        (json!({ "days": ["monday"] }), "`mon`, `tue`"),
        (json!({ "days": [] }), "must not be empty"),
        (json!({ "timezone": "Berlin" }), "Europe/Berlin"),
        (json!({ "draft_expires_after_s": 0 }), "at least 1"),
        (json!({ "people": ["mira"] }), "@studio.example"),
        (json!({ "organizer": "mira" }), "not an address"),
        (json!({ "conference": "https://meet.example/room" }), "{event_id}"),
        (json!({ "conference": "meet/{event_id}" }), "http(s)"),
        (
            json!({ "conference": "https://meet.example/{event_id}", "zoom": zoom }),
            "must not be set together",
        ),
        (json!({ "url": "https://dav.example/mira/" }), "organizer"),
        (json!({ "user": "mira", "password_env": "P" }), "needs `url`"),
        (
            json!({ "url": "https://dav.example/", "organizer": "m@s.example", "user": "mira" }),
            "password_env",
        ),
        (json!({ "url": "mailto:mira@studio.example", "organizer": "m@s.example" }), "not an http(s) URL"),
        (
            json!({ "url": "https://me:secret@dav.example/", "organizer": "m@s.example" }),
            "must not contain a user or password",
        ),
        (json!({ "colour": "red" }), "unknown field `colour`"),
    ] {
        let error = parse(invalid.clone()).unwrap_err();
        assert!(error.contains(expected), "{invalid}: {error}");
    }
}

#[test]
fn people_are_addresses_and_domains_in_any_case() {
    let settings = parse(json!({ "people": ["Mira@studio.example", "@team.example"] })).unwrap();
    assert!(settings.includes_person("mira@STUDIO.example") && settings.includes_person("jon@team.example"));
    assert!(
        !settings.includes_person("jon@studio.example") && !settings.includes_person("jon@notteam.example")
    );
}

#[test]
fn a_day_may_last_until_midnight() {
    let settings = parse(json!({ "working_hours": "00:00-24:00" })).unwrap();
    assert_eq!(serde_json::to_value(settings).unwrap()["working_hours"], "00:00-24:00");
}

use serde_json::{Value, json};

use super::Settings;

fn read(value: Value) -> Result<Settings, String> {
    let settings: Settings = serde_json::from_value(value).map_err(|error| error.to_string())?;
    settings.check().map(|()| settings)
}

#[test]
fn defaults_are_sound_and_survive_being_written() {
    let settings = Settings::default();
    settings.check().unwrap();
    let written = serde_json::to_value(&settings).unwrap();
    assert_eq!(written["working_hours"], "09:00-17:00");
    assert_eq!(written["days"], json!(["mon", "tue", "wed", "thu", "fri"]));
    assert_eq!(read(written).unwrap(), settings);
}

#[test]
fn what_cannot_hold_is_refused_with_a_way_out() {
    let zoom = json!({ "account_id": "a", "client_id": "c" });
    for (wrong, told) in [
        (json!({ "working_hours": "17:00-09:00" }), "later time last"),
        (json!({ "working_hours": "nine to five" }), "09:00-17:00"),
        (json!({ "days": ["monday"] }), "mon, tue"),
        (json!({ "days": [] }), "names no day"),
        (json!({ "timezone": "Berlin" }), "Europe/Berlin"),
        (json!({ "draft_expires_after_s": 0 }), "at least 1"),
        (json!({ "people": ["mira"] }), "@studio.example"),
        (json!({ "organizer": "mira" }), "not an address"),
        (json!({ "conference": "https://meet.example/room" }), "{event_id}"),
        (json!({ "conference": "meet/{event_id}" }), "http(s)"),
        (json!({ "conference": "https://meet.example/{event_id}", "zoom": zoom }), "exclude each other"),
        (json!({ "url": "https://dav.example/mira/" }), "organizer"),
        (json!({ "user": "mira", "password_env": "P" }), "needs `url`"),
        (
            json!({ "url": "https://dav.example/", "organizer": "m@s.example", "user": "mira" }),
            "password_env",
        ),
        (
            json!({ "url": "mailto:mira@studio.example", "organizer": "m@s.example" }),
            "not an http(s) address",
        ),
        (
            json!({ "url": "https://me:secret@dav.example/", "organizer": "m@s.example" }),
            "must not hold a password",
        ),
        (json!({ "colour": "red" }), "unknown field `colour`"),
    ] {
        let error = read(wrong.clone()).unwrap_err();
        assert!(error.contains(told), "{wrong}: {error}");
    }
}

#[test]
fn people_are_addresses_and_domains_in_any_case() {
    let settings = read(json!({ "people": ["Mira@studio.example", "@team.example"] })).unwrap();
    assert!(settings.knows("mira@STUDIO.example") && settings.knows("jon@team.example"));
    assert!(!settings.knows("jon@studio.example") && !settings.knows("jon@notteam.example"));
}

#[test]
fn a_day_may_last_until_midnight() {
    let settings = read(json!({ "working_hours": "00:00-24:00" })).unwrap();
    assert_eq!(serde_json::to_value(settings).unwrap()["working_hours"], "00:00-24:00");
}

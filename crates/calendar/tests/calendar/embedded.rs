//! The contract of docs/reference/capabilities.md, in the file.

use serde_json::{Value, json};

use crate::desk::{ANNA, By, Desk, JON, MIRA, code, commit, half_hour, starts};

#[tokio::test]
async fn a_draft_is_proposed_looked_at_and_committed() {
    let desk = Desk::new(json!({ "conference": "https://meet.example/{event_id}" }));
    let mut wish = half_hour(&[MIRA, "guest@elsewhere.example"]);
    wish["preferredTimes"] = json!(["2026-03-03T14:00:00+01:00", "2026-03-02T18:30:00Z"]);
    let proposal = desk.ask(ANNA, "propose", wish).await.unwrap();
    let draft = proposal["draftId"].as_str().unwrap();
    assert!(draft.starts_with("draft_") && draft.len() == 26, "{draft}");
    assert_eq!(proposal["unknownAttendees"], json!(["guest@elsewhere.example"]));
    assert_eq!(proposal["expiresAt"], "2026-03-02T10:00:00Z");
    assert_eq!(proposal["slots"].as_array().unwrap().len(), 10);
    let first = json!({ "start": "2026-03-03T14:00:00+01:00", "end": "2026-03-03T14:30:00+01:00", "preferred": true });
    assert_eq!(proposal["slots"][0], first);
    assert_eq!(
        starts(&proposal)[1..4],
        ["2026-03-02T19:30:00+01:00", "2026-03-02T09:00:00+01:00", "2026-03-02T09:30:00+01:00"]
    );
    let kept = desk.ask(ANNA, "getDraft", json!({ "draftId": draft })).await.unwrap();
    let expected = json!({
        "draftId": draft, "title": "Lighting review", "attendees": [MIRA, "guest@elsewhere.example"],
        "durationMinutes": 30, "timezone": "Europe/Berlin", "slots": proposal["slots"], "status": "open",
        "eventId": null, "expiresAt": "2026-03-02T10:00:00Z",
    });
    assert_eq!(kept, expected);
    let mut asked = commit(draft, 0, "call-1");
    asked["note"] = json!("Bring the cue sheets.");
    let event = desk.ask(ANNA, "commit", asked).await.unwrap();
    let id = draft.replace("draft_", "evt_");
    let expected = json!({
        "eventId": id, "title": "Lighting review", "start": "2026-03-03T14:00:00+01:00",
        "end": "2026-03-03T14:30:00+01:00", "timezone": "Europe/Berlin",
        "attendees": [MIRA, "guest@elsewhere.example"], "conferenceUrl": format!("https://meet.example/{id}"),
    });
    assert_eq!(event, expected);
    let kept = desk.ask(ANNA, "getDraft", json!({ "draftId": draft })).await.unwrap();
    assert_eq!((&kept["status"], &kept["eventId"]), (&json!("committed"), &json!(id)));
}

#[tokio::test]
async fn booked_times_are_taken_for_each_attendee_and_for_nobody_else() {
    let desk = Desk::new(json!({}));
    let draft = desk.draft(ANNA, &[MIRA, JON]).await;
    desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    let window = json!({ "attendees": [JON, "MIRA@studio.example", "li@studio.example", "guest@elsewhere.example"],
        "start": "2026-03-02T08:10:00Z", "end": "2026-03-03T00:00:00Z" });
    let taken = json!([{ "start": "2026-03-02T08:10:00Z", "end": "2026-03-02T08:30:00Z" }]);
    let expected = json!({
        "busy": { JON: taken, "MIRA@studio.example": taken, "guest@elsewhere.example": [], "li@studio.example": [] },
        "unknownAttendees": ["guest@elsewhere.example"],
    });
    assert_eq!(desk.ask(ANNA, "freeBusy", window).await.unwrap(), expected);
    let next = desk.ask(ANNA, "propose", half_hour(&["jon@STUDIO.example"])).await.unwrap();
    assert_eq!(starts(&next)[0], "2026-03-02T09:30:00+01:00");
    let other = desk.ask(ANNA, "propose", half_hour(&["li@studio.example"])).await.unwrap();
    assert_eq!(starts(&other)[0], "2026-03-02T09:00:00+01:00");
}

#[tokio::test]
async fn what_was_booked_with_a_stranger_is_known_though_their_calendar_is_not() {
    let desk = Desk::new(json!({ "people": [] }));
    let draft = desk.draft(ANNA, &["guest@elsewhere.example"]).await;
    desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    let next = desk.ask(ANNA, "propose", half_hour(&["guest@elsewhere.example"])).await.unwrap();
    assert_eq!(starts(&next)[0], "2026-03-02T09:30:00+01:00");
    assert_eq!(next["unknownAttendees"], json!(["guest@elsewhere.example"]));
}

#[tokio::test]
async fn a_draft_is_of_a_person_in_any_session_and_of_nobody_else() {
    let desk = Desk::new(json!({}));
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let asked = json!({ "draftId": draft });
    for by in [By { session: None, ..ANNA }, By { session: Some("s2"), ..ANNA }] {
        desk.ask(by, "getDraft", asked.clone()).await.unwrap();
    }
    for by in [By { user: "eve", ..ANNA }, By { org: None, ..ANNA }, By { org: Some("other"), ..ANNA }] {
        assert_eq!(code(desk.ask(by, "getDraft", asked.clone()).await), "NOT_FOUND");
        assert_eq!(code(desk.ask(by, "commit", commit(&draft, 0, "a")).await), "NOT_FOUND");
    }
    let (other, by) = (desk.another(), By { session: None, ..ANNA });
    let event = crate::desk::ask(&other, by, "commit", commit(&draft, 0, "a")).await.unwrap();
    assert_eq!(event["start"], "2026-03-02T09:00:00+01:00");
}

#[tokio::test]
async fn drafts_and_slots_lapse() {
    let desk = Desk::new(json!({ "draft_expires_after_s": 60 }));
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let late = By { now: "2026-03-01T10:01:00Z", ..ANNA };
    let kept = desk.ask(late, "getDraft", json!({ "draftId": draft })).await.unwrap();
    assert_eq!(kept["status"], "expired");
    assert_eq!(code(desk.ask(late, "commit", commit(&draft, 0, "a")).await), "EXPIRED");
    let desk = Desk::new(json!({}));
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let late = By { now: "2026-03-02T08:00:01Z", ..ANNA };
    assert_eq!(code(desk.ask(late, "commit", commit(&draft, 0, "a")).await), "EXPIRED", "the slot has begun");
    desk.ask(late, "commit", commit(&draft, 1, "a")).await.unwrap();
}

#[tokio::test]
async fn no_free_time_is_no_draft() {
    let desk = Desk::new(json!({}));
    let mut wish = half_hour(&[MIRA]);
    wish["windowStart"] = json!("2026-03-01T11:00:00Z");
    wish["windowEnd"] = json!("2026-03-01T20:00:00Z");
    let none = json!({ "draftId": null, "slots": [], "unknownAttendees": [], "expiresAt": null });
    assert_eq!(desk.ask(ANNA, "propose", wish.clone()).await.unwrap(), none);
    wish["windowStart"] = json!("2026-02-01T11:00:00Z");
    wish["windowEnd"] = json!("2026-02-02T20:00:00Z");
    assert_eq!(desk.ask(ANNA, "propose", wish).await.unwrap(), none, "the window is past");
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    let desk = Desk::new(json!({}));
    let wrong: [(&str, Value, &str); 10] = [
        ("timezone", json!("Mars/Olympus"), "INVALID_TIMEZONE"),
        ("windowEnd", json!("2026-03-01T00:00:00Z"), "INVALID_ARGUMENT"),
        ("windowEnd", json!("2029-03-01T00:00:00Z"), "INVALID_ARGUMENT"),
        ("windowEnd", json!("tomorrow"), "INVALID_ARGUMENT"),
        ("windowEnd", json!("9999-03-01T00:00:00Z"), "INVALID_ARGUMENT"),
        ("durationMinutes", json!(0), "INVALID_ARGUMENT"),
        ("durationMinutes", json!(-5), "INVALID_ARGUMENT"),
        ("attendees", json!([]), "INVALID_ARGUMENT"),
        ("attendees", json!(["mira@x.example\r\nATTENDEE:mailto:eve@x.example"]), "INVALID_ARGUMENT"),
        ("colour", json!("red"), "INVALID_ARGUMENT"),
    ];
    for (name, value, expected) in wrong {
        let mut wish = half_hour(&[MIRA]);
        wish[name] = value.clone();
        assert_eq!(code(desk.ask(ANNA, "propose", wish).await), expected, "{name}: {value}");
    }
    let draft = desk.draft(ANNA, &[MIRA]).await;
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 10, "a")).await), "INVALID_ARGUMENT");
    assert_eq!(code(desk.ask(ANNA, "commit", commit("draft_x", 0, "a")).await), "NOT_FOUND");
    assert_eq!(code(desk.ask(ANNA, "move", json!({})).await), "NOT_CONFIGURED");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_said_to_be_out_of_reach() {
    let desk = Desk::new(json!({}));
    std::fs::write(desk.directory().join("data"), "not a directory").unwrap();
    assert_eq!(code(desk.ask(ANNA, "propose", half_hour(&[MIRA])).await), "UNREACHABLE");
    // Once it is mended, nothing has to be started again.
    std::fs::remove_file(desk.directory().join("data")).unwrap();
    desk.draft(ANNA, &[MIRA]).await;
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(desk.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

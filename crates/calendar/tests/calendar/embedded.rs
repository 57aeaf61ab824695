//! The behaviour that docs/reference/capabilities.md documents, without remote services.

use serde_json::{Value, json};

use crate::support::{ANNA, Caller, JON, MIRA, TestCalendar, code, commit, half_hour, starts};

#[tokio::test]
async fn a_draft_is_proposed_read_and_committed() {
    let calendar = TestCalendar::new(json!({ "conference": "https://meet.example/{event_id}" }));
    let mut request = half_hour(&[MIRA, "guest@elsewhere.example"]);
    request["preferredTimes"] = json!(["2026-03-03T14:00:00+01:00", "2026-03-02T18:30:00Z"]);
    let proposal = calendar.call(ANNA, "propose", request).await.unwrap();
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
    let stored = calendar.call(ANNA, "getDraft", json!({ "draftId": draft })).await.unwrap();
    let mut slots = stored["slots"].clone();
    let texts: Vec<Value> =
        slots.as_array_mut().unwrap().iter_mut().map(|slot| slot["text"].take()).collect();
    assert_eq!(texts[0], "Tuesday 3 March 2026, 14:00–14:30 (Europe/Berlin, UTC+01:00)");
    slots
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(|slot| _ = slot.as_object_mut().unwrap().remove("text"));
    assert_eq!(slots, proposal["slots"]);
    let expected = json!({
        "draftId": draft, "title": "Lighting review", "attendees": [MIRA, "guest@elsewhere.example"],
        "durationMinutes": 30, "timezone": "Europe/Berlin", "slots": stored["slots"], "status": "open",
        "place": "a conference link at meet.example", "eventId": null, "expiresAt": "2026-03-02T10:00:00Z",
    });
    assert_eq!(stored, expected);
    let mut args = commit(draft, 0, "call-1");
    args["note"] = json!("Bring the cue sheets.");
    let event = calendar.call(ANNA, "commit", args).await.unwrap();
    let id = draft.replace("draft_", "evt_");
    let expected = json!({
        "eventId": id, "title": "Lighting review", "start": "2026-03-03T14:00:00+01:00",
        "end": "2026-03-03T14:30:00+01:00", "timezone": "Europe/Berlin",
        "attendees": [MIRA, "guest@elsewhere.example"], "conferenceUrl": format!("https://meet.example/{id}"),
    });
    assert_eq!(event, expected);
    let stored = calendar.call(ANNA, "getDraft", json!({ "draftId": draft })).await.unwrap();
    assert_eq!((&stored["status"], &stored["eventId"]), (&json!("committed"), &json!(id)));
}

#[tokio::test]
async fn booked_times_are_busy_for_each_attendee_and_no_one_else() {
    let calendar = TestCalendar::new(json!({}));
    let draft = calendar.draft(ANNA, &[MIRA, JON]).await;
    calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    let window = json!({ "attendees": [JON, "MIRA@studio.example", "li@studio.example", "guest@elsewhere.example"],
        "start": "2026-03-02T08:10:00Z", "end": "2026-03-03T00:00:00Z" });
    let busy = json!([{ "start": "2026-03-02T08:10:00Z", "end": "2026-03-02T08:30:00Z" }]);
    let expected = json!({
        "busy": { JON: busy, "MIRA@studio.example": busy, "guest@elsewhere.example": [], "li@studio.example": [] },
        "unknownAttendees": ["guest@elsewhere.example"],
    });
    assert_eq!(calendar.call(ANNA, "freeBusy", window).await.unwrap(), expected);
    let next = calendar.call(ANNA, "propose", half_hour(&["jon@STUDIO.example"])).await.unwrap();
    assert_eq!(starts(&next)[0], "2026-03-02T09:30:00+01:00");
    let other = calendar.call(ANNA, "propose", half_hour(&["li@studio.example"])).await.unwrap();
    assert_eq!(starts(&other)[0], "2026-03-02T09:00:00+01:00");
}

#[tokio::test]
async fn events_booked_with_an_unknown_attendee_are_busy_times() {
    let calendar = TestCalendar::new(json!({ "people": [] }));
    let draft = calendar.draft(ANNA, &["guest@elsewhere.example"]).await;
    calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    let next = calendar.call(ANNA, "propose", half_hour(&["guest@elsewhere.example"])).await.unwrap();
    assert_eq!(starts(&next)[0], "2026-03-02T09:30:00+01:00");
    assert_eq!(next["unknownAttendees"], json!(["guest@elsewhere.example"]));
}

#[tokio::test]
async fn a_draft_belongs_to_one_principal_in_any_session() {
    let calendar = TestCalendar::new(json!({}));
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let args = json!({ "draftId": draft });
    for caller in [Caller { session: None, ..ANNA }, Caller { session: Some("s2"), ..ANNA }] {
        calendar.call(caller, "getDraft", args.clone()).await.unwrap();
    }
    for caller in
        [Caller { user: "eve", ..ANNA }, Caller { org: None, ..ANNA }, Caller { org: Some("other"), ..ANNA }]
    {
        assert_eq!(code(calendar.call(caller, "getDraft", args.clone()).await), "NOT_FOUND");
        assert_eq!(code(calendar.call(caller, "commit", commit(&draft, 0, "a")).await), "NOT_FOUND");
    }
    let (other, caller) = (calendar.reopen(), Caller { session: None, ..ANNA });
    let event = crate::support::call(&other, caller, "commit", commit(&draft, 0, "a")).await.unwrap();
    assert_eq!(event["start"], "2026-03-02T09:00:00+01:00");
}

#[tokio::test]
async fn drafts_and_slots_expire() {
    let calendar = TestCalendar::new(json!({ "draft_expires_after_s": 60 }));
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let late = Caller { now: "2026-03-01T10:01:00Z", ..ANNA };
    let stored = calendar.call(late, "getDraft", json!({ "draftId": draft })).await.unwrap();
    assert_eq!(stored["status"], "expired");
    assert_eq!(code(calendar.call(late, "commit", commit(&draft, 0, "a")).await), "EXPIRED");
    let calendar = TestCalendar::new(json!({}));
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let late = Caller { now: "2026-03-02T08:00:01Z", ..ANNA };
    assert_eq!(
        code(calendar.call(late, "commit", commit(&draft, 0, "a")).await),
        "EXPIRED",
        "the slot has begun"
    );
    calendar.call(late, "commit", commit(&draft, 1, "a")).await.unwrap();
}

#[tokio::test]
async fn without_free_time_there_is_no_draft() {
    let calendar = TestCalendar::new(json!({}));
    let mut request = half_hour(&[MIRA]);
    request["windowStart"] = json!("2026-03-01T11:00:00Z");
    request["windowEnd"] = json!("2026-03-01T20:00:00Z");
    let none = json!({ "draftId": null, "slots": [], "unknownAttendees": [], "expiresAt": null });
    assert_eq!(calendar.call(ANNA, "propose", request.clone()).await.unwrap(), none);
    request["windowStart"] = json!("2026-02-01T11:00:00Z");
    request["windowEnd"] = json!("2026-02-02T20:00:00Z");
    assert_eq!(calendar.call(ANNA, "propose", request).await.unwrap(), none, "the window is past");
}

#[tokio::test]
async fn invalid_arguments_are_refused() {
    let calendar = TestCalendar::new(json!({}));
    let invalid: [(&str, Value, &str); 10] = [
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
    for (name, value, expected) in invalid {
        let mut request = half_hour(&[MIRA]);
        request[name] = value.clone();
        assert_eq!(code(calendar.call(ANNA, "propose", request).await), expected, "{name}: {value}");
    }
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 10, "a")).await), "INVALID_ARGUMENT");
    assert_eq!(code(calendar.call(ANNA, "commit", commit("draft_x", 0, "a")).await), "NOT_FOUND");
    assert_eq!(code(calendar.call(ANNA, "move", json!({})).await), "NOT_CONFIGURED");
}

#[tokio::test]
async fn an_unusable_file_is_unreachable_until_it_is_fixed() {
    let calendar = TestCalendar::new(json!({}));
    std::fs::write(calendar.directory().join("data"), "not a directory").unwrap();
    assert_eq!(code(calendar.call(ANNA, "propose", half_hour(&[MIRA])).await), "UNREACHABLE");
    // Once it is fixed, no restart is needed.
    std::fs::remove_file(calendar.directory().join("data")).unwrap();
    calendar.draft(ANNA, &[MIRA]).await;
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(calendar.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

//! Conference links from Zoom: one meeting for each event, whatever fails in between.

use std::time::Duration;

use serde_json::json;

use crate::fake_zoom::{Failure, FakeZoom};
use crate::support::{ANNA, Caller, MIRA, TestCalendar, call, code, commit};

/// For requests that never get a response.
const SHORT_DEADLINE: Caller = Caller { timeout: Duration::from_millis(600), ..ANNA };

async fn start() -> (FakeZoom, TestCalendar) {
    let zoom = FakeZoom::start().await;
    let calendar = TestCalendar::new(zoom.settings());
    (zoom, calendar)
}

/// After all holds have expired.
fn later() -> Caller {
    Caller { now: "2026-03-01T10:05:00Z", ..ANNA }
}

#[tokio::test]
async fn an_event_has_the_link_of_its_meeting() {
    let (zoom, calendar) = start().await;
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let mut args = commit(&draft, 1, "a");
    args["note"] = json!("Bring a lamp.");
    let event = calendar.call(ANNA, "commit", args).await.unwrap();
    let meeting = zoom.state.lock().unwrap().meetings[0].clone();
    assert_eq!(event["conferenceUrl"], meeting["join_url"]);
    assert_eq!(meeting["topic"], "Lighting review");
    assert_eq!(meeting["type"], 2);
    assert_eq!(meeting["start_time"], "2026-03-02T08:30:00Z");
    assert_eq!(meeting["duration"], 30);
    assert_eq!(meeting["timezone"], "Europe/Berlin");
    assert_eq!(meeting["agenda"], format!("{}\nBring a lamp.", event["eventId"].as_str().unwrap()));
    assert_eq!(calendar.call(ANNA, "commit", commit(&draft, 1, "a")).await.unwrap(), event);
    assert_eq!(zoom.meetings(), 1);
}

#[tokio::test]
async fn a_token_is_reused_and_renewed_when_it_is_rejected_or_expires() {
    let (zoom, calendar) = start().await;
    for execution in ["a", "b"] {
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        calendar.call(ANNA, "commit", commit(&draft, 0, execution)).await.unwrap();
    }
    assert_eq!(zoom.state.lock().unwrap().tokens_given, 1);
    zoom.state.lock().unwrap().token = Some("revoked".to_owned());
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    calendar.call(ANNA, "commit", commit(&draft, 0, "c")).await.unwrap();
    assert_eq!((zoom.meetings(), zoom.state.lock().unwrap().tokens_given), (3, 2));
    // A token that expires at once is never used again.
    let zoom = FakeZoom::start().await;
    zoom.state.lock().unwrap().expires_in = 30;
    let calendar = TestCalendar::new(zoom.settings());
    for execution in ["a", "b"] {
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        calendar.call(ANNA, "commit", commit(&draft, 0, execution)).await.unwrap();
    }
    assert_eq!(zoom.state.lock().unwrap().tokens_given, 2);
}

#[tokio::test]
async fn when_zoom_refuses_nothing_is_booked_and_the_time_is_released() {
    for (status, expected) in [(429, "RATE_LIMIT"), (403, "FORBIDDEN"), (400, "FORBIDDEN")] {
        let (zoom, calendar) = start().await;
        zoom.fail_next(Failure::Status(status));
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await), expected);
        assert!(calendar.events().rows().is_empty());
        // Another call for the same draft may continue at once.
        let event = calendar.call(ANNA, "commit", commit(&draft, 0, "b")).await.unwrap();
        assert_eq!(calendar.events().rows()[0].id, event["eventId"]);
        assert_eq!(zoom.meetings(), 1);
    }
}

#[tokio::test]
async fn wrong_and_missing_credentials_and_an_unavailable_service_have_different_codes() {
    let zoom = FakeZoom::start().await;
    let mut settings = zoom.settings();
    settings["zoom"]["client_id"] = json!("someone else");
    let calendar = TestCalendar::new(settings.clone());
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await), "FORBIDDEN");
    settings["zoom"]["client_secret_env"] = json!("NOT_SET");
    let missing = calendar.reopen_with(&settings);
    assert_eq!(code(call(&missing, ANNA, "commit", commit(&draft, 0, "a")).await), "NOT_CONFIGURED");
    zoom.state.lock().unwrap().token_status = Some(503);
    let down = calendar.reopen_with(&zoom.settings());
    assert_eq!(code(call(&down, ANNA, "commit", commit(&draft, 0, "a")).await), "UNREACHABLE");
    let mut settings = zoom.settings();
    settings["zoom"]["oauth"] = json!("http://127.0.0.1:1/oauth/token");
    let gone = calendar.reopen_with(&settings);
    assert_eq!(code(call(&gone, ANNA, "commit", commit(&draft, 0, "a")).await), "UNREACHABLE");
    assert!(calendar.events().rows().is_empty());
}

#[tokio::test]
async fn an_interrupted_call_continues_with_the_meeting_that_it_created() {
    for failure in [Failure::NoResponseAfterEffect, Failure::ErrorAfterEffect] {
        let (zoom, calendar) = start().await;
        // Other meetings fill the first page of the list.
        for _ in 0..3 {
            zoom.state
                .lock()
                .unwrap()
                .meetings
                .push(json!({ "id": 1, "join_url": "https://x.example", "agenda": "other" }));
        }
        zoom.fail_next(failure);
        let draft = calendar.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(calendar.call(SHORT_DEADLINE, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
        assert!(calendar.events().rows().is_empty());
        let event = call(&calendar.reopen(), ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
        assert_eq!((zoom.meetings(), zoom.state.lock().unwrap().lists), (4, 2));
        assert_eq!(event["conferenceUrl"], zoom.state.lock().unwrap().meetings[3]["join_url"]);
        assert_eq!(calendar.events().rows().len(), 1);
    }
}

#[tokio::test]
async fn while_a_call_may_still_run_its_time_and_its_draft_are_blocked() {
    let (zoom, calendar) = start().await;
    zoom.fail_next(Failure::NoResponseAfterEffect);
    let (draft, rival) = (calendar.draft(ANNA, &[MIRA]).await, calendar.draft(ANNA, &[MIRA]).await);
    assert_eq!(code(calendar.call(SHORT_DEADLINE, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "b")).await), "UNREACHABLE");
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&rival, 0, "c")).await), "CONFLICT");
    assert_eq!(calendar.call(ANNA, "getDraft", json!({ "draftId": draft })).await.unwrap()["status"], "open");
    // Later another call cancels the left-over meeting and creates one for its own slot.
    let event = calendar.call(later(), "commit", commit(&draft, 2, "b")).await.unwrap();
    assert_eq!(event["start"], "2026-03-02T10:00:00+01:00");
    let meetings = zoom.state.lock().unwrap().meetings.clone();
    assert_eq!(meetings.len(), 1);
    assert_eq!(meetings[0]["start_time"], "2026-03-02T09:00:00Z");
    assert_eq!(code(calendar.call(later(), "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    calendar.call(later(), "commit", commit(&rival, 0, "d")).await.unwrap();
    assert_eq!(calendar.events().rows().len(), 2);
}

#[tokio::test]
async fn two_concurrent_calls_with_one_id_create_one_meeting() {
    let (zoom, calendar) = start().await;
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let args = || calendar.call(ANNA, "commit", commit(&draft, 0, "a"));
    let (first, second) = tokio::join!(args(), args());
    let (won, lost) = if first.is_ok() { (first, second) } else { (second, first) };
    assert_eq!(code(lost), "UNREACHABLE");
    assert_eq!(args().await.unwrap(), won.unwrap());
    assert_eq!((zoom.meetings(), calendar.events().rows().len()), (1, 1));
}

#[tokio::test]
async fn when_the_time_is_lost_the_meeting_is_cancelled() {
    let (zoom, calendar) = start().await;
    let (draft, rival) = (calendar.draft(ANNA, &[MIRA]).await, calendar.draft(ANNA, &[MIRA]).await);
    zoom.fail_next(Failure::NoResponseAfterEffect);
    assert_eq!(code(calendar.call(SHORT_DEADLINE, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
    assert_eq!(zoom.meetings(), 1);
    calendar.call(later(), "commit", commit(&rival, 0, "b")).await.unwrap();
    assert_eq!(code(calendar.call(later(), "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    assert_eq!((zoom.meetings(), calendar.events().rows().len()), (1, 1));
    // Another slot of the draft can still be booked.
    calendar.call(later(), "commit", commit(&draft, 1, "c")).await.unwrap();
    assert_eq!((zoom.meetings(), calendar.events().rows().len()), (2, 2));
}

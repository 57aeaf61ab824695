//! Conference links from Zoom: one meeting an event, whatever goes wrong between the two.

use std::time::Duration;

use serde_json::json;

use crate::desk::{ANNA, By, Desk, MIRA, ask, code, commit};
use crate::zoom_api::{Trouble, ZoomApi};

/// Not long enough for what never answers.
const HASTY: By = By { within: Duration::from_millis(600), ..ANNA };

async fn desk() -> (ZoomApi, Desk) {
    let zoom = ZoomApi::start().await;
    let desk = Desk::new(zoom.settings());
    (zoom, desk)
}

/// When nobody can still be at work on what was left.
fn later() -> By {
    By { now: "2026-03-01T10:05:00Z", ..ANNA }
}

#[tokio::test]
async fn an_event_has_the_link_of_its_meeting() {
    let (zoom, desk) = desk().await;
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let mut asked = commit(&draft, 1, "a");
    asked["note"] = json!("Bring a lamp.");
    let event = desk.ask(ANNA, "commit", asked).await.unwrap();
    let meeting = zoom.state.lock().unwrap().meetings[0].clone();
    assert_eq!(event["conferenceUrl"], meeting["join_url"]);
    assert_eq!(meeting["topic"], "Lighting review");
    assert_eq!(meeting["type"], 2);
    assert_eq!(meeting["start_time"], "2026-03-02T08:30:00Z");
    assert_eq!(meeting["duration"], 30);
    assert_eq!(meeting["timezone"], "Europe/Berlin");
    assert_eq!(meeting["agenda"], format!("{}\nBring a lamp.", event["eventId"].as_str().unwrap()));
    assert_eq!(desk.ask(ANNA, "commit", commit(&draft, 1, "a")).await.unwrap(), event);
    assert_eq!(zoom.meetings(), 1);
}

#[tokio::test]
async fn one_token_serves_many_events_and_is_renewed_when_it_is_refused_or_ends() {
    let (zoom, desk) = desk().await;
    for execution in ["a", "b"] {
        let draft = desk.draft(ANNA, &[MIRA]).await;
        desk.ask(ANNA, "commit", commit(&draft, 0, execution)).await.unwrap();
    }
    assert_eq!(zoom.state.lock().unwrap().tokens_given, 1);
    zoom.state.lock().unwrap().token = Some("revoked".to_owned());
    let draft = desk.draft(ANNA, &[MIRA]).await;
    desk.ask(ANNA, "commit", commit(&draft, 0, "c")).await.unwrap();
    assert_eq!((zoom.meetings(), zoom.state.lock().unwrap().tokens_given), (3, 2));
    // A token that ends at once is never used a second time.
    let zoom = ZoomApi::start().await;
    zoom.state.lock().unwrap().expires_in = 30;
    let desk = Desk::new(zoom.settings());
    for execution in ["a", "b"] {
        let draft = desk.draft(ANNA, &[MIRA]).await;
        desk.ask(ANNA, "commit", commit(&draft, 0, execution)).await.unwrap();
    }
    assert_eq!(zoom.state.lock().unwrap().tokens_given, 2);
}

#[tokio::test]
async fn what_zoom_refuses_books_nothing_and_gives_the_time_back() {
    for (status, expected) in [(429, "RATE_LIMIT"), (403, "FORBIDDEN"), (400, "FORBIDDEN")] {
        let (zoom, desk) = desk().await;
        zoom.trouble(Trouble::Status(status));
        let draft = desk.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await), expected);
        assert!(desk.listing().rows().is_empty());
        // Another call for the same draft may go on at once.
        let event = desk.ask(ANNA, "commit", commit(&draft, 0, "b")).await.unwrap();
        assert_eq!(desk.listing().rows()[0].id, event["eventId"]);
        assert_eq!(zoom.meetings(), 1);
    }
}

#[tokio::test]
async fn credentials_that_are_wrong_or_missing_are_told_apart_from_a_service_that_is_down() {
    let zoom = ZoomApi::start().await;
    let mut settings = zoom.settings();
    settings["zoom"]["client_id"] = json!("someone else");
    let desk = Desk::new(settings.clone());
    let draft = desk.draft(ANNA, &[MIRA]).await;
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await), "FORBIDDEN");
    settings["zoom"]["client_secret_env"] = json!("NOT_SET");
    let missing = desk.with(&settings);
    assert_eq!(code(ask(&missing, ANNA, "commit", commit(&draft, 0, "a")).await), "NOT_CONFIGURED");
    zoom.state.lock().unwrap().token_status = Some(503);
    let down = desk.with(&zoom.settings());
    assert_eq!(code(ask(&down, ANNA, "commit", commit(&draft, 0, "a")).await), "UNREACHABLE");
    let mut settings = zoom.settings();
    settings["zoom"]["oauth"] = json!("http://127.0.0.1:1/oauth/token");
    let gone = desk.with(&settings);
    assert_eq!(code(ask(&gone, ANNA, "commit", commit(&draft, 0, "a")).await), "UNREACHABLE");
    assert!(desk.listing().rows().is_empty());
}

#[tokio::test]
async fn a_call_that_was_interrupted_goes_on_with_the_meeting_that_it_made() {
    for trouble in [Trouble::SilenceAfterEffect, Trouble::FailsAfterEffect] {
        let (zoom, desk) = desk().await;
        // Others fill the first page of the list.
        for _ in 0..3 {
            zoom.state
                .lock()
                .unwrap()
                .meetings
                .push(json!({ "id": 1, "join_url": "https://x.example", "agenda": "other" }));
        }
        zoom.trouble(trouble);
        let draft = desk.draft(ANNA, &[MIRA]).await;
        assert_eq!(code(desk.ask(HASTY, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
        assert!(desk.listing().rows().is_empty());
        let event = ask(&desk.another(), ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
        assert_eq!((zoom.meetings(), zoom.state.lock().unwrap().lists), (4, 2));
        assert_eq!(event["conferenceUrl"], zoom.state.lock().unwrap().meetings[3]["join_url"]);
        assert_eq!(desk.listing().rows().len(), 1);
    }
}

#[tokio::test]
async fn while_a_call_may_be_at_work_its_time_is_taken_and_its_draft_is_waited_for() {
    let (zoom, desk) = desk().await;
    zoom.trouble(Trouble::SilenceAfterEffect);
    let (draft, rival) = (desk.draft(ANNA, &[MIRA]).await, desk.draft(ANNA, &[MIRA]).await);
    assert_eq!(code(desk.ask(HASTY, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 0, "b")).await), "UNREACHABLE");
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&rival, 0, "c")).await), "CONFLICT");
    assert_eq!(desk.ask(ANNA, "getDraft", json!({ "draftId": draft })).await.unwrap()["status"], "open");
    // Later another call takes it up: what was left of a meeting goes, and a new one is made, at the time it asks for.
    let event = desk.ask(later(), "commit", commit(&draft, 2, "b")).await.unwrap();
    assert_eq!(event["start"], "2026-03-02T10:00:00+01:00");
    let meetings = zoom.state.lock().unwrap().meetings.clone();
    assert_eq!(meetings.len(), 1);
    assert_eq!(meetings[0]["start_time"], "2026-03-02T09:00:00Z");
    assert_eq!(code(desk.ask(later(), "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    desk.ask(later(), "commit", commit(&rival, 0, "d")).await.unwrap();
    assert_eq!(desk.listing().rows().len(), 2);
}

#[tokio::test]
async fn two_calls_with_one_id_at_a_time_make_one_meeting() {
    let (zoom, desk) = desk().await;
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let asked = || desk.ask(ANNA, "commit", commit(&draft, 0, "a"));
    let (first, second) = tokio::join!(asked(), asked());
    let (won, lost) = if first.is_ok() { (first, second) } else { (second, first) };
    assert_eq!(code(lost), "UNREACHABLE");
    assert_eq!(asked().await.unwrap(), won.unwrap());
    assert_eq!((zoom.meetings(), desk.listing().rows().len()), (1, 1));
}

#[tokio::test]
async fn a_time_that_was_lost_meanwhile_takes_its_meeting_along() {
    let (zoom, desk) = desk().await;
    let (draft, rival) = (desk.draft(ANNA, &[MIRA]).await, desk.draft(ANNA, &[MIRA]).await);
    zoom.trouble(Trouble::SilenceAfterEffect);
    assert_eq!(code(desk.ask(HASTY, "commit", commit(&draft, 0, "a")).await), "TIMEOUT");
    assert_eq!(zoom.meetings(), 1);
    desk.ask(later(), "commit", commit(&rival, 0, "b")).await.unwrap();
    assert_eq!(code(desk.ask(later(), "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    assert_eq!((zoom.meetings(), desk.listing().rows().len()), (1, 1));
    // The draft itself is free again for another of its times.
    desk.ask(later(), "commit", commit(&draft, 1, "c")).await.unwrap();
    assert_eq!((zoom.meetings(), desk.listing().rows().len()), (2, 2));
}

//! A draft becomes at most one event, and a time is booked at most once.

use std::sync::Arc;

use serde_json::json;

use crate::support::{ANNA, Caller, JON, MIRA, TestCalendar, call, code, commit};

#[tokio::test]
async fn a_repeated_call_returns_the_same_event_and_another_call_is_a_conflict() {
    let calendar = TestCalendar::new(json!({}));
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let event = calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    assert_eq!(calendar.call(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap(), event);
    assert_eq!(call(&calendar.reopen(), ANNA, "commit", commit(&draft, 0, "a")).await.unwrap(), event);
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 0, "b")).await), "CONFLICT");
    assert_eq!(code(calendar.call(ANNA, "commit", commit(&draft, 1, "b")).await), "CONFLICT");
    // The same id in another session is another call.
    let elsewhere = Caller { session: Some("s2"), ..ANNA };
    assert_eq!(code(calendar.call(elsewhere, "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    assert_eq!(calendar.events().rows().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_drafts_for_one_time_one_is_booked() {
    let calendar = TestCalendar::new(json!({}));
    let mut drafts = Vec::new();
    for round in 0..12 {
        // Two groups without common attendees; all drafts have the same first slot.
        drafts.push(
            calendar.draft(ANNA, if round % 2 == 0 { &[MIRA, "a@studio.example"] } else { &[JON] }).await,
        );
    }
    let processes: Vec<_> = (0..3).map(|_| Arc::new(calendar.reopen())).collect();
    let mut calls = tokio::task::JoinSet::new();
    for (index, draft) in drafts.into_iter().enumerate() {
        let process = Arc::clone(&processes[index % 3]);
        calls.spawn(async move {
            call(&process, ANNA, "commit", commit(&draft, 0, "x")).await.map_err(|error| error.code)
        });
    }
    let ended = calls.join_all().await;
    assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), 2, "{ended:?}");
    assert!(ended.iter().all(|ended| !matches!(ended, Err(code) if *code != "CONFLICT")), "{ended:?}");
    assert_eq!(calendar.events().rows().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_calls_for_one_draft_one_succeeds() {
    let calendar = TestCalendar::new(json!({}));
    let draft = calendar.draft(ANNA, &[MIRA]).await;
    let process = Arc::new(calendar.reopen());
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..16_usize {
        let (process, draft) = (Arc::clone(&process), draft.clone());
        calls.spawn(async move {
            call(&process, ANNA, "commit", commit(&draft, number % 10, &format!("call-{}", number % 8))).await
        });
    }
    let (won, lost): (Vec<_>, Vec<_>) = calls.join_all().await.into_iter().partition(Result::is_ok);
    // Each call was made twice: the winner got its event both times.
    assert_eq!((won.len(), lost.len()), (2, 14));
    assert_eq!(won[0].as_ref().unwrap(), won[1].as_ref().unwrap());
    assert!(lost.into_iter().all(|lost| code(lost) == "CONFLICT"));
    assert_eq!(calendar.events().rows().len(), 1);
}

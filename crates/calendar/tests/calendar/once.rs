//! A draft becomes one event at most, and a time is taken once, whoever tries.

use std::sync::Arc;

use serde_json::json;

use crate::desk::{ANNA, By, Desk, JON, MIRA, ask, code, commit};

#[tokio::test]
async fn the_same_call_again_gives_the_same_event_and_another_a_conflict() {
    let desk = Desk::new(json!({}));
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let event = desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap();
    assert_eq!(desk.ask(ANNA, "commit", commit(&draft, 0, "a")).await.unwrap(), event);
    assert_eq!(ask(&desk.another(), ANNA, "commit", commit(&draft, 0, "a")).await.unwrap(), event);
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 0, "b")).await), "CONFLICT");
    assert_eq!(code(desk.ask(ANNA, "commit", commit(&draft, 1, "b")).await), "CONFLICT");
    // The same id in another session is another call.
    let elsewhere = By { session: Some("s2"), ..ANNA };
    assert_eq!(code(desk.ask(elsewhere, "commit", commit(&draft, 0, "a")).await), "CONFLICT");
    assert_eq!(desk.listing().rows().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_drafts_that_race_for_a_time_one_wins() {
    let desk = Desk::new(json!({}));
    let mut drafts = Vec::new();
    for round in 0..12 {
        // Two groups that share nobody, and all of them the first slot.
        drafts
            .push(desk.draft(ANNA, if round % 2 == 0 { &[MIRA, "a@studio.example"] } else { &[JON] }).await);
    }
    let processes: Vec<_> = (0..3).map(|_| Arc::new(desk.another())).collect();
    let mut calls = tokio::task::JoinSet::new();
    for (index, draft) in drafts.into_iter().enumerate() {
        let process = Arc::clone(&processes[index % 3]);
        calls.spawn(async move {
            ask(&process, ANNA, "commit", commit(&draft, 0, "x")).await.map_err(|fault| fault.code)
        });
    }
    let ended = calls.join_all().await;
    assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), 2, "{ended:?}");
    assert!(ended.iter().all(|ended| !matches!(ended, Err(code) if *code != "CONFLICT")), "{ended:?}");
    assert_eq!(desk.listing().rows().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_calls_for_one_draft_one_wins() {
    let desk = Desk::new(json!({}));
    let draft = desk.draft(ANNA, &[MIRA]).await;
    let process = Arc::new(desk.another());
    let mut calls = tokio::task::JoinSet::new();
    for call in 0..16_usize {
        let (process, draft) = (Arc::clone(&process), draft.clone());
        calls.spawn(async move {
            ask(&process, ANNA, "commit", commit(&draft, call % 10, &format!("call-{}", call % 8))).await
        });
    }
    let (won, lost): (Vec<_>, Vec<_>) = calls.join_all().await.into_iter().partition(Result::is_ok);
    // Each call was made twice: the winner got its event both times.
    assert_eq!((won.len(), lost.len()), (2, 14));
    assert_eq!(won[0].as_ref().unwrap(), won[1].as_ref().unwrap());
    assert!(lost.into_iter().all(|lost| code(lost) == "CONFLICT"));
    assert_eq!(desk.listing().rows().len(), 1);
}

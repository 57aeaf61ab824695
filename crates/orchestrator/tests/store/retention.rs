//! Rules about what expires, and what is kept how long.

use std::sync::Arc;

use serde_json::json;
use toolwright_orchestrator::store::{
    Answer, Backend, Claim, Claimed, Confirmation, Durability, SessionRecord, SessionStanding, Status,
};

use crate::harness::{
    DAY, HOUR, Harness, NOW, approved, claim, idempotent, question, run, session, status, swept, with_session,
};

/// A store whose session `s` lasts for a week.
async fn with_long_session<H: Harness>() -> (H, Arc<H::Store>) {
    let harness = H::fresh().await;
    let store = harness.store();
    let long = SessionRecord { expires_at: NOW + 7 * DAY, ..session("s") };
    store.create_session(long).await.unwrap();
    (harness, store)
}

fn at(now: i64, execution: &str) -> Claim {
    Claim { now, durability: Durability::Relaxed, ..idempotent("s", execution) }
}

async fn is_known(store: &impl Backend, execution: &str) -> bool {
    store.recorded("s", execution).await.unwrap().is_some()
}

pub async fn sessions_expire_when_their_time_comes<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let later = SessionRecord { expires_at: NOW + 2 * HOUR, ..session("later") };
    store.create_session(later.clone()).await.unwrap();
    let ended = SessionRecord { standing: SessionStanding::Ended, ..session("ended") };
    store.create_session(ended.clone()).await.unwrap();
    assert_eq!(swept(&*store, NOW + HOUR - 1).await, (0, 0));
    assert_eq!(swept(&*store, NOW + HOUR).await, (1, 0));
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 0), "once is enough");
    let expired = store.session("s").await.unwrap().unwrap();
    let read = session("s");
    assert_eq!((expired.standing, expired.revision), (SessionStanding::Expired, read.revision + 1));
    assert_eq!(store.update_session(&read).await, Ok(false), "expiry is a change like any other");
    assert_eq!(*store.session("later").await.unwrap().unwrap(), later);
    assert_eq!(*store.session("ended").await.unwrap().unwrap(), ended);
}

pub async fn questions_expire_when_their_time_comes<H: Harness>() {
    let (_harness, store) = with_long_session::<H>().await;
    store.ask(question("q", "s", "a")).await.unwrap();
    let later = Confirmation { expires_at: NOW + 2 * HOUR, ..question("later", "s", "b") };
    store.ask(later).await.unwrap();
    let answered = approved(&*store, question("answered", "s", "c")).await;
    assert_eq!(swept(&*store, NOW + HOUR - 1).await, (0, 0));
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 1));
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 0));
    let expired = Confirmation { answer: Answer::Expired, ..question("q", "s", "a") };
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), expired);
    let waiting = store.pending(None).await.unwrap();
    assert_eq!(waiting.iter().map(|asked| asked.id.as_str()).collect::<Vec<_>>(), ["later"]);
    assert_eq!(*store.approved().await.unwrap()[0], answered, "an answer does not expire");
}

pub async fn the_last_hundred_are_kept_whatever_their_age<H: Harness>() {
    let (_harness, store) = with_long_session::<H>().await;
    for number in 0..103 {
        run(&*store, at(NOW + number, &format!("call {number}"))).await;
    }
    store.sweep(NOW + 2 * DAY).await.unwrap();
    for number in 0..103 {
        assert_eq!(is_known(&*store, &format!("call {number}")).await, number >= 3, "call {number}");
    }
    // What is forgotten may be claimed as if it had never been.
    assert_eq!(store.claim(at(NOW + 2 * DAY, "call 0")).await, Ok(Claimed::New));
}

pub async fn everything_of_the_last_day_is_kept<H: Harness>() {
    let (_harness, store) = with_long_session::<H>().await;
    for number in 0..110 {
        let now = if number < 5 { NOW } else { NOW + HOUR };
        run(&*store, at(now, &format!("call {number}"))).await;
    }
    store.sweep(NOW + DAY - 1).await.unwrap();
    assert!(is_known(&*store, "call 0").await);
    store.sweep(NOW + DAY).await.unwrap();
    for number in 0..110 {
        assert_eq!(is_known(&*store, &format!("call {number}")).await, number >= 5, "call {number}");
    }
    assert!(matches!(store.claim(at(NOW, "call 5")).await, Ok(Claimed::Finished(_))));
}

pub async fn what_still_runs_is_never_forgotten<H: Harness>() {
    let (_harness, store) = with_long_session::<H>().await;
    assert_eq!(store.claim(claim("s", "slow")).await, Ok(Claimed::New));
    for number in 0..120 {
        run(&*store, at(NOW + 1, &format!("call {number}"))).await;
    }
    store.sweep(NOW + 2 * DAY).await.unwrap();
    assert_eq!(status(&*store, "s", "slow").await, Some(Status::Running));
    assert!(is_known(&*store, "call 119").await);
    assert!(!is_known(&*store, "call 0").await, "what runs does not keep others");
}

pub async fn a_session_is_forgotten_a_day_after_its_end<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let end = NOW + HOUR;
    run(&*store, Claim { now: NOW, ..claim("s", "call") }).await;
    store.ask(question("q", "s", "another")).await.unwrap();
    let active = SessionRecord { expires_at: end + 2 * DAY, ..session("active") };
    store.create_session(active.clone()).await.unwrap();
    assert_eq!(swept(&*store, end).await, (1, 1));
    assert_eq!(swept(&*store, end + DAY - 1).await, (0, 0));
    assert!(store.session("s").await.unwrap().is_some());
    assert!(is_known(&*store, "call").await);
    assert_eq!(swept(&*store, end + DAY).await, (0, 0));
    assert_eq!(store.session("s").await, Ok(None));
    assert_eq!(store.recorded("s", "call").await, Ok(None));
    assert_eq!(store.confirmation("q").await, Ok(None));
    assert_eq!(*store.session("active").await.unwrap().unwrap(), active);
    // The audit stays.
    store.flush().await.unwrap();
    assert_eq!(store.audit(0, 10).await.unwrap().len(), 1);
}

pub async fn a_session_whose_end_was_asked_for_ends_when_its_time_comes<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let ending = SessionRecord {
        id: "ending".to_owned(),
        state: json!({ "pendingEndVoiceSession": { "after": "farewell_spoken" } }),
        ..session("s")
    };
    // What only looks like it, in a text, is not it.
    let talking = json!({ "note": "\"pendingEndVoiceSession\":" });
    store
        .create_session(SessionRecord { id: "talking".to_owned(), state: talking, ..session("s") })
        .await
        .unwrap();
    store.create_session(ending).await.unwrap();
    assert_eq!(store.over(&ids(["s", "ending", "nobody"]), NOW).await, Ok(ids(["nobody"])));
    assert_eq!(store.over(&ids(["s"]), NOW + HOUR).await, Ok(ids(["s"])));
    assert_eq!(swept(&*store, NOW + HOUR).await, (3, 0));
    let standing = async |id: &str| store.session(id).await.unwrap().unwrap().standing;
    assert_eq!(standing("s").await, SessionStanding::Expired);
    assert_eq!(standing("talking").await, SessionStanding::Expired);
    assert_eq!(standing("ending").await, SessionStanding::Ended);
    assert_eq!(store.over(&ids(["ending", "s"]), NOW).await, Ok(ids(["ending", "s"])));
}

pub async fn a_toolset_is_kept_by_the_sessions_that_go_on<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let other = "1.0.00000000+abc";
    let newer = SessionRecord { id: "newer".to_owned(), toolset: other.to_owned(), ..session("s") };
    store.create_session(newer.clone()).await.unwrap();
    let told = json!({ "note": "\"toolset\":\"never\"" });
    store
        .create_session(SessionRecord { id: "talking".to_owned(), state: told, ..session("s") })
        .await
        .unwrap();
    assert_eq!(store.is_kept(other).await, Ok(true));
    assert_eq!(store.is_kept("never").await, Ok(false));
    store.update_session(&SessionRecord { standing: SessionStanding::Ended, ..newer }).await.unwrap();
    assert_eq!(store.is_kept(other).await, Ok(false));
    assert_eq!(store.is_kept(&session("s").toolset).await, Ok(true));
}

fn ids<const N: usize>(ids: [&str; N]) -> Vec<String> {
    ids.map(str::to_owned).to_vec()
}

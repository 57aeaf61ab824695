//! Rules about sessions.

use serde_json::json;
use toolwright_orchestrator::store::{Backend, Claimed, Error, SessionRecord, SessionStanding};

use crate::harness::{Harness, NOW, claim, retrieval, session, with_session};

pub async fn a_session_is_kept_as_it_was_given<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let plain = SessionRecord { principal: Default::default(), state: json!(null), ..session("t") };
    store.create_session(plain.clone()).await.unwrap();
    assert_eq!(*store.session("s").await.unwrap().unwrap(), session("s"));
    assert_eq!(*store.session("t").await.unwrap().unwrap(), plain);
}

pub async fn a_taken_id_is_refused_and_changes_nothing<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let other = SessionRecord { client_id: "another".to_owned(), ..session("s") };
    assert_eq!(store.create_session(other).await, Err(Error::Exists("s".to_owned())));
    assert_eq!(*store.session("s").await.unwrap().unwrap(), session("s"));
}

pub async fn an_unknown_session_is_none_and_cannot_be_changed<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let missing = Error::NoSession("nobody".to_owned());
    assert_eq!(store.session("nobody").await, Ok(None));
    assert_eq!(store.begin_turn("nobody", NOW).await, Err(missing.clone()));
    assert_eq!(store.update_session(&session("nobody")).await, Err(missing));
    assert_eq!(store.recorded("nobody", "call").await, Ok(None));
}

pub async fn a_turn_is_counted_and_gets_a_fresh_budget<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    assert_eq!(store.begin_turn("s", NOW).await.unwrap().turn, 1);
    assert_eq!(store.claim(retrieval("s", "a", 1, 1)).await, Ok(Claimed::New));
    assert_eq!(store.claim(retrieval("s", "b", 1, 1)).await, Ok(Claimed::OverBudget { used: 1 }));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 1);
    let begun = store.begin_turn("s", NOW).await.unwrap();
    assert_eq!((begun.turn, begun.retrievals), (2, 0));
    assert_eq!(store.session("s").await.unwrap().unwrap(), begun);
    assert_eq!(store.claim(retrieval("s", "b", 2, 1)).await, Ok(Claimed::New));
}

pub async fn an_update_succeeds_on_the_revision_that_was_read<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let read = store.session("s").await.unwrap().unwrap();
    let changed = SessionRecord {
        state: json!({"pending": "hello"}),
        remembered: vec![],
        standing: SessionStanding::Ended,
        expires_at: NOW + 5,
        ..(*read).clone()
    };
    assert_eq!(store.update_session(&changed).await, Ok(true));
    let after = store.session("s").await.unwrap().unwrap();
    assert_eq!(*after, SessionRecord { revision: read.revision + 1, ..changed.clone() });
    assert_eq!(store.update_session(&changed).await, Ok(false), "the revision is an old one");
    assert_eq!(store.session("s").await.unwrap().unwrap(), after);
    assert_eq!(store.update_session(&after).await, Ok(true));
}

pub async fn an_update_keeps_turn_and_budget<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let read = store.session("s").await.unwrap().unwrap();
    store.begin_turn("s", NOW).await.unwrap();
    assert_eq!(store.claim(retrieval("s", "a", 1, 5)).await, Ok(Claimed::New));
    assert_eq!(store.claim(claim("s", "b")).await, Ok(Claimed::New));
    let stale = SessionRecord { turn: 9, retrievals: 4, state: json!(1), ..(*read).clone() };
    assert_eq!(store.update_session(&stale).await, Ok(true));
    let after = store.session("s").await.unwrap().unwrap();
    assert_eq!((after.turn, after.retrievals, &after.state), (1, 1, &json!(1)));
}

//! Rules about sessions.

use serde_json::json;
use toolwright_orchestrator::store::{Backend, Durability, Error, SessionRecord, SessionStatus};

use crate::support::{NOW, StoreFixture, session, with_session};

pub async fn a_session_is_stored_unchanged<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let plain = SessionRecord { principal: Default::default(), state: json!(null), ..session("t") };
    store.create_session(plain.clone(), Durability::Committed).await.unwrap();
    assert_eq!(*store.session("s").await.unwrap().unwrap(), session("s"));
    assert_eq!(*store.session("t").await.unwrap().unwrap(), plain);
}

pub async fn an_existing_session_id_is_refused_and_changes_nothing<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let other = SessionRecord { client_id: "another".to_owned(), ..session("s") };
    assert_eq!(store.create_session(other, Durability::Committed).await, Err(Error::Exists("s".to_owned())));
    assert_eq!(*store.session("s").await.unwrap().unwrap(), session("s"));
}

pub async fn an_unknown_session_is_none_and_cannot_be_changed<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let missing = Error::NoSession("unknown".to_owned());
    assert_eq!(store.session("unknown").await, Ok(None));
    assert_eq!(store.begin_turn("unknown").await, Err(missing.clone()));
    assert_eq!(store.update_session(&session("unknown")).await, Err(missing));
    assert_eq!(store.execution("unknown", "call").await, Ok(None));
}

pub async fn an_update_succeeds_on_the_revision_that_was_read<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let read = store.session("s").await.unwrap().unwrap();
    let changed = SessionRecord {
        state: json!({"pending": "hello"}),
        remembered: vec![],
        status: SessionStatus::Ended,
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

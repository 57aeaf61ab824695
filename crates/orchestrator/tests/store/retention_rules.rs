//! Rules about expiry and retention.

use std::sync::Arc;

use serde_json::json;
use toolwright_orchestrator::store::{
    Backend, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Durability, ExecutionStatus,
    SessionRecord, SessionStatus,
};

use crate::support::{
    ALL, DAY, HOUR, NOW, StoreFixture, approved, claim, confirmation, idempotent, run, session, status,
    swept, with_session,
};

/// A store whose session `s` lasts for a week.
async fn with_long_session<F: StoreFixture>() -> (F, Arc<F::Store>) {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let long = SessionRecord { expires_at: NOW + 7 * DAY, ..session("s") };
    store.create_session(long, Durability::Committed).await.unwrap();
    (fixture, store)
}

fn claim_at(now: i64, execution: &str) -> Claim {
    Claim { now, durability: Durability::Relaxed, ..idempotent("s", execution) }
}

async fn is_known(store: &impl Backend, execution: &str) -> bool {
    store.execution("s", execution).await.unwrap().is_some()
}

pub async fn a_sweep_expires_sessions<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let later = SessionRecord { expires_at: NOW + 2 * HOUR, ..session("later") };
    store.create_session(later.clone(), Durability::Committed).await.unwrap();
    let ended = SessionRecord { status: SessionStatus::Ended, ..session("ended") };
    store.create_session(ended.clone(), Durability::Committed).await.unwrap();
    assert_eq!(swept(&*store, NOW + HOUR - 1).await, (0, 0));
    assert_eq!(swept(&*store, NOW + HOUR).await, (1, 0));
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 0), "they expire once");
    let expired = store.session("s").await.unwrap().unwrap();
    let read = session("s");
    assert_eq!((expired.status, expired.revision), (SessionStatus::Expired, read.revision + 1));
    assert_eq!(store.update_session(&read).await, Ok(false), "expiry increments the revision");
    assert_eq!(*store.session("later").await.unwrap().unwrap(), later);
    assert_eq!(*store.session("ended").await.unwrap().unwrap(), ended);
}

pub async fn a_sweep_expires_confirmations<F: StoreFixture>() {
    let (_fixture, store) = with_long_session::<F>().await;
    store.create_confirmation(confirmation("q", "s", "a")).await.unwrap();
    let later = ConfirmationRecord { expires_at: NOW + 2 * HOUR, ..confirmation("later", "s", "b") };
    store.create_confirmation(later).await.unwrap();
    let answered = approved(&*store, confirmation("answered", "s", "c")).await;
    assert_eq!(swept(&*store, NOW + HOUR - 1).await, (0, 0));
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 1));
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 0));
    let expired = ConfirmationRecord { status: ConfirmationStatus::Expired, ..confirmation("q", "s", "a") };
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), expired);
    let waiting = store.pending_confirmations(ALL).await.unwrap();
    assert_eq!(waiting.iter().map(|pending| pending.id.as_str()).collect::<Vec<_>>(), ["later"]);
    assert_eq!(*store.approved_confirmations().await.unwrap()[0], answered, "an answer does not expire");
}

pub async fn the_last_hundred_executions_are_retained_whatever_their_age<F: StoreFixture>() {
    let (_fixture, store) = with_long_session::<F>().await;
    for number in 0..103 {
        run(&*store, claim_at(NOW + number, &format!("call {number}"))).await;
    }
    store.sweep(NOW + 2 * DAY).await.unwrap();
    for number in 0..103 {
        assert_eq!(is_known(&*store, &format!("call {number}")).await, number >= 3, "call {number}");
    }
    // A deleted execution can be claimed again.
    assert_eq!(store.claim(claim_at(NOW + 2 * DAY, "call 0")).await, Ok(ClaimOutcome::New));
}

pub async fn all_executions_of_the_last_day_are_retained<F: StoreFixture>() {
    let (_fixture, store) = with_long_session::<F>().await;
    for number in 0..110 {
        let now = if number < 5 { NOW } else { NOW + HOUR };
        run(&*store, claim_at(now, &format!("call {number}"))).await;
    }
    store.sweep(NOW + DAY - 1).await.unwrap();
    assert!(is_known(&*store, "call 0").await);
    store.sweep(NOW + DAY).await.unwrap();
    for number in 0..110 {
        assert_eq!(is_known(&*store, &format!("call {number}")).await, number >= 5, "call {number}");
    }
    assert!(matches!(store.claim(claim_at(NOW, "call 5")).await, Ok(ClaimOutcome::Finished(_))));
}

pub async fn running_executions_are_never_deleted<F: StoreFixture>() {
    let (_fixture, store) = with_long_session::<F>().await;
    assert_eq!(store.claim(claim("s", "slow")).await, Ok(ClaimOutcome::New));
    for number in 0..120 {
        run(&*store, claim_at(NOW + 1, &format!("call {number}"))).await;
    }
    store.sweep(NOW + 2 * DAY).await.unwrap();
    assert_eq!(status(&*store, "s", "slow").await, Some(ExecutionStatus::Running));
    assert!(is_known(&*store, "call 119").await);
    assert!(!is_known(&*store, "call 0").await, "a running execution does not retain others");
}

pub async fn a_session_is_deleted_a_day_after_its_end<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let end = NOW + HOUR;
    run(&*store, Claim { now: NOW, ..claim("s", "call") }).await;
    store.create_confirmation(confirmation("q", "s", "another")).await.unwrap();
    let active = SessionRecord { expires_at: end + 2 * DAY, ..session("active") };
    store.create_session(active.clone(), Durability::Committed).await.unwrap();
    assert_eq!(swept(&*store, end).await, (1, 1));
    assert_eq!(swept(&*store, end + DAY - 1).await, (0, 0));
    assert!(store.session("s").await.unwrap().is_some());
    assert!(is_known(&*store, "call").await);
    assert_eq!(swept(&*store, end + DAY).await, (0, 0));
    assert_eq!(store.session("s").await, Ok(None));
    assert_eq!(store.execution("s", "call").await, Ok(None));
    assert_eq!(store.confirmation("q").await, Ok(None));
    assert_eq!(*store.session("active").await.unwrap().unwrap(), active);
    // The audit stays.
    store.flush().await.unwrap();
    assert_eq!(store.audit_rows(0, 10).await.unwrap().len(), 1);
}

pub async fn a_session_that_was_asked_to_end_ends_instead_of_expiring<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let ending = SessionRecord {
        id: "ending".to_owned(),
        state: json!({ "pendingEndVoiceSession": { "after": "farewell_spoken" } }),
        ..session("s")
    };
    // The same text inside a JSON string does not count.
    let quoting = json!({ "note": "\"pendingEndVoiceSession\":" });
    store
        .create_session(
            SessionRecord { id: "quoting".to_owned(), state: quoting, ..session("s") },
            Durability::Committed,
        )
        .await
        .unwrap();
    store.create_session(ending, Durability::Committed).await.unwrap();
    assert_eq!(store.inactive_sessions(&ids(["s", "ending", "unknown"]), NOW).await, Ok(ids(["unknown"])));
    assert_eq!(store.inactive_sessions(&ids(["s"]), NOW + HOUR).await, Ok(ids(["s"])));
    assert_eq!(swept(&*store, NOW + HOUR).await, (3, 0));
    let session_status = async |id: &str| store.session(id).await.unwrap().unwrap().status;
    assert_eq!(session_status("s").await, SessionStatus::Expired);
    assert_eq!(session_status("quoting").await, SessionStatus::Expired);
    assert_eq!(session_status("ending").await, SessionStatus::Ended);
    assert_eq!(store.inactive_sessions(&ids(["ending", "s"]), NOW).await, Ok(ids(["ending", "s"])));
}

pub async fn a_toolset_is_in_use_while_an_active_session_has_it<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let other = "1.0.00000000+abc";
    let newer = SessionRecord { id: "newer".to_owned(), toolset: other.to_owned(), ..session("s") };
    store.create_session(newer.clone(), Durability::Committed).await.unwrap();
    let quoting = json!({ "note": "\"toolset\":\"never\"" });
    store
        .create_session(
            SessionRecord { id: "quoting".to_owned(), state: quoting, ..session("s") },
            Durability::Committed,
        )
        .await
        .unwrap();
    assert_eq!(store.is_toolset_in_use(other).await, Ok(true));
    assert_eq!(store.is_toolset_in_use("never").await, Ok(false));
    store.update_session(&SessionRecord { status: SessionStatus::Ended, ..newer }).await.unwrap();
    assert_eq!(store.is_toolset_in_use(other).await, Ok(false));
    assert_eq!(store.is_toolset_in_use(&session("s").toolset).await, Ok(true));
}

fn ids<const N: usize>(ids: [&str; N]) -> Vec<String> {
    ids.map(str::to_owned).to_vec()
}

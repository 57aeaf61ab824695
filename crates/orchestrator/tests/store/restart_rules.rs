//! Rules about what survives a crash.

use serde_json::json;
use toolwright_orchestrator::store::{
    Backend, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Durability, ExecutionRecord,
    ExecutionStatus, SessionRecord, SessionStatus,
};

use crate::audit_rules::{entries, verified};
use crate::support::{
    ALL, DAY, HOUR, NOW, Restart, approve, approved, claim, confirmation, confirmed, entry, idempotent, run,
    session, settlement, status, swept, with_session,
};

pub async fn sessions_survive<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let changed = SessionRecord { state: json!({"a": [1, 2.5, "\u{1F600}"]}), ..session("s") };
    assert_eq!(store.update_session(&changed).await, Ok(true));
    let before = store.session("s").await.unwrap().unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.session("s").await.unwrap().unwrap(), before);
    assert_eq!(store.update_session(&changed).await, Ok(false));
    assert_eq!(store.update_session(&before).await, Ok(true));
    assert!(store.create_session(session("s"), Durability::Committed).await.is_err());
}

pub async fn a_turn_survives_once_it_is_flushed<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    store.begin_turn("s").await.unwrap();
    let begun = store.begin_turn("s").await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().session("s").await.unwrap().unwrap(), begun);
}

pub async fn a_settled_execution_survives<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    let envelope = run(&*store, call.clone()).await;
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    let args = settlement(&call).args;
    let status = ExecutionStatus::Finished(envelope.clone());
    let record = ExecutionRecord { digest: call.digest, args, status };
    assert_eq!(store.execution("s", "call").await, Ok(Some(record)));
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::Finished(envelope)));
    assert_eq!(store.claim(Claim { digest: [8; 32], ..call }).await, Ok(ClaimOutcome::Conflict));
}

pub async fn an_unfinished_idempotent_execution_can_be_claimed_again<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let call = idempotent("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(status(&*store, "s", "call").await, Some(ExecutionStatus::Abandoned));
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(other).await, Ok(ClaimOutcome::Conflict));
    let envelope = run(&*store, call.clone()).await;
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().claim(call).await, Ok(ClaimOutcome::Finished(envelope)));
}

pub async fn any_other_unfinished_execution_stays_in_doubt<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    let mut fixture = fixture;
    for _ in 0..3 {
        fixture = fixture.restart().await;
        let store = fixture.store();
        assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::InDoubt));
        assert_eq!(status(&*store, "s", "call").await, Some(ExecutionStatus::InDoubt));
    }
}

pub async fn an_execution_in_doubt_conflicts_with_other_arguments<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    let other = Claim { digest: [8; 32], ..call };
    assert_eq!(fixture.store().claim(other).await, Ok(ClaimOutcome::Conflict));
}

pub async fn confirmations_survive<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let pending = store.create_confirmation(confirmation("pending", "s", "a")).await.unwrap();
    let unused = approved(&*store, confirmation("unused", "s", "b")).await;
    let used = approved(&*store, confirmation("used", "s", "c")).await;
    assert_eq!(store.claim(confirmed(&used)).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.pending_confirmations(ALL).await.unwrap()[..], *std::slice::from_ref(&pending));
    assert_eq!(store.confirmation("pending").await, Ok(Some(pending)));
    let open = store.approved_confirmations().await.unwrap();
    assert_eq!((open.len(), &*open[0]), (1, &unused));
    let again = ConfirmationRecord { token_hash: [1; 32], ..confirmation("again", "s", "a") };
    assert_eq!(store.create_confirmation(again).await.unwrap().id, "pending", "it is still pending");
    assert!(store.decide_confirmation("pending", approve("ada"), NOW).await.unwrap().is_some());
    assert_eq!(store.claim(confirmed(&unused)).await, Ok(ClaimOutcome::New));
}

pub async fn an_approval_is_not_used_twice<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    let call = confirmed(&approval);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert!(store.approved_confirmations().await.unwrap().is_empty());
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().status, ConfirmationStatus::Used);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::InDoubt));
    let again = Claim { execution: "again".into(), ..call };
    assert_eq!(store.claim(again).await, Ok(ClaimOutcome::Unapproved));
}

pub async fn an_abandoned_execution_needs_no_second_approval<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    let call = Claim { idempotent: true, ..confirmed(&approval) };
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Running));
}

pub async fn an_expired_session_stays_expired<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    store.create_confirmation(confirmation("q", "s", "call")).await.unwrap();
    assert_eq!(swept(&*store, NOW + HOUR).await, (1, 1));
    store.flush().await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.session("s").await.unwrap().unwrap().status, SessionStatus::Expired);
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().status, ConfirmationStatus::Expired);
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 0));
}

pub async fn the_audit_continues<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    run(&*store, claim("s", "first")).await;
    let before = verified(&*store).await;
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    run(&*store, claim("s", "second")).await;
    let rows = verified(&*store).await;
    assert_eq!(entries(&rows), [entry("s", "first"), entry("s", "second")]);
    assert_eq!(rows[0], before[0]);
    // A store with one writer continues the chain; otherwise each process has its own.
    let position = if rows[0].chain == rows[1].chain { 2 } else { 1 };
    assert_eq!(rows[1].position, position);
    assert_eq!(store.audit_rows(rows[0].number, 9).await.unwrap(), rows[1..]);
}

pub async fn relaxed_changes_survive_once_they_are_flushed<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    let done = Claim { durability: Durability::Relaxed, ..idempotent("s", "done") };
    let begun = Claim { execution: "begun".into(), ..done.clone() };
    let envelope = run(&*store, done.clone()).await;
    assert_eq!(store.claim(begun.clone()).await, Ok(ClaimOutcome::New));
    store.append_audit(entry("s", "apart")).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.claim(done).await, Ok(ClaimOutcome::Finished(envelope)));
    assert_eq!(status(&*store, "s", "begun").await, Some(ExecutionStatus::Abandoned));
    assert_eq!(entries(&verified(&*store).await), [entry("s", "done"), entry("s", "apart")]);
    // The new owner can settle it.
    assert_eq!(store.claim(begun.clone()).await, Ok(ClaimOutcome::New));
    store.settle(settlement(&begun)).await.unwrap();
    assert!(matches!(store.claim(begun).await, Ok(ClaimOutcome::Finished(_))));
}

pub async fn deleted_records_stay_deleted<F: Restart>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let long = SessionRecord { expires_at: NOW + 7 * DAY, ..session("s") };
    store.create_session(long, Durability::Committed).await.unwrap();
    store.create_session(session("short"), Durability::Committed).await.unwrap();
    run(&*store, claim("short", "call")).await;
    for number in 0..103 {
        let call = idempotent("s", &format!("call {number}"));
        run(&*store, Claim { durability: Durability::Relaxed, ..call }).await;
    }
    for _ in 0..2 {
        store.sweep(NOW + 2 * DAY).await.unwrap();
    }
    store.flush().await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.session("short").await, Ok(None));
    for number in 0..103 {
        let known = store.execution("s", &format!("call {number}")).await.unwrap().is_some();
        assert_eq!(known, number >= 3, "call {number}");
    }
    assert_eq!(verified(&*store).await.len(), 104);
}

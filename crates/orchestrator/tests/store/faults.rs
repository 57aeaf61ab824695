//! What happens when the disk fails: nothing is acknowledged that is not there, and all goes on once it is back.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::json;
use toolwright_orchestrator::store::sqlite::{Fault, Faults, Options};
use toolwright_orchestrator::store::{
    Answer, Backend, Claim, Claimed, Durability, Error, Result, SessionRecord, Settlement, Sqlite, Status,
};

use crate::audit::{entries, verified};
use crate::harness::{
    Harness, NOW, Reopen, approve, approved, claim, confirmed, entry, envelope, idempotent, question,
    retrieval, run, session, settlement, status,
};
use crate::on_disk::OnDisk;

/// A store with the session `s`, and the switch for what goes wrong.
async fn breakable() -> (OnDisk, Arc<Sqlite>, Faults) {
    let faults = Faults::default();
    let harness = OnDisk::with(Options { faults: faults.clone(), ..Options::default() });
    let store = harness.store();
    store.create_session(session("s")).await.unwrap();
    (harness, store, faults)
}

fn is_unavailable<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Unavailable(_)))
}

#[tokio::test]
async fn a_claim_that_fails_has_cost_nothing_and_may_come_again() {
    let (harness, store, faults) = breakable().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    let call = Claim { budget: Some((0, 1)), ..confirmed(&asked) };
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.claim(call.clone()).await));
    assert_eq!(store.recorded("s", "call").await, Ok(None));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 0);
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), asked);
    faults.set(Fault::None);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    assert_eq!(store.claim(retrieval("s", "more", 0, 1)).await, Ok(Claimed::OverBudget { used: 1 }));
    store.settle(settlement(&call)).await.unwrap();
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert!(matches!(store.claim(call).await, Ok(Claimed::Finished(_))));
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().answer, Answer::Used);
}

#[tokio::test]
async fn a_claim_that_failed_is_not_there_after_a_restart() {
    let (harness, store, faults) = breakable().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.claim(confirmed(&asked)).await));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.recorded("s", "call").await, Ok(None));
    assert_eq!(*store.approved().await.unwrap()[0], asked);
    assert_eq!(store.claim(confirmed(&asked)).await, Ok(Claimed::New));
}

#[tokio::test]
async fn changes_that_fail_are_as_if_they_had_not_been_made() {
    let (harness, store, faults) = breakable().await;
    store.ask(question("asked", "s", "a")).await.unwrap();
    let before = store.session("s").await.unwrap().unwrap();
    let changed = SessionRecord { state: json!(1), ..(*before).clone() };
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.create_session(session("t")).await));
    assert!(is_unavailable(store.update_session(&changed).await));
    assert!(is_unavailable(store.ask(question("q", "s", "b")).await));
    assert!(is_unavailable(store.decide("asked", approve("ada"), NOW).await));
    assert_eq!(store.session("t").await, Ok(None));
    assert_eq!(store.session("s").await.unwrap().unwrap(), before);
    assert_eq!(store.confirmation("q").await, Ok(None));
    assert_eq!(store.pending(None).await.unwrap().len(), 1);
    faults.set(Fault::None);
    store.create_session(session("t")).await.unwrap();
    assert_eq!(store.update_session(&changed).await, Ok(true));
    store.ask(question("q", "s", "b")).await.unwrap();
    assert!(store.decide("asked", approve("ada"), NOW).await.unwrap().is_some());
    let after = store.session("s").await.unwrap().unwrap();
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.session("s").await.unwrap().unwrap(), after);
    assert_eq!(store.session("t").await.unwrap().unwrap().id, "t");
    assert_eq!(store.pending(None).await.unwrap()[0].id, "q");
    assert_eq!(store.approved().await.unwrap()[0].id, "asked");
}

#[tokio::test]
async fn a_settlement_that_fails_leaves_the_call_in_doubt() {
    let (harness, store, faults) = breakable().await;
    let (once, again) = (claim("s", "once"), idempotent("s", "again"));
    for call in [&once, &again] {
        assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    }
    faults.set(Fault::CommitFails);
    for call in [&once, &again] {
        assert!(is_unavailable(store.settle(settlement(call)).await));
    }
    faults.set(Fault::None);
    assert_eq!(store.claim(once.clone()).await, Ok(Claimed::InDoubt));
    assert_eq!(status(&*store, "s", "again").await, Some(Status::Abandoned));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.claim(once).await, Ok(Claimed::InDoubt));
    run(&*store, again).await;
    assert_eq!(entries(&verified(&*store).await), [entry("s", "again")]);
}

#[tokio::test]
async fn the_owner_of_a_call_may_settle_it_once_the_disk_is_back() {
    let (harness, store, faults) = breakable().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.settle(settlement(&call)).await));
    faults.set(Fault::None);
    store.settle(settlement(&call)).await.unwrap();
    drop(store);
    let harness = harness.reopen().await;
    assert_eq!(harness.store().claim(call.clone()).await, Ok(Claimed::Finished(settlement(&call).envelope)));
}

#[tokio::test]
async fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let (harness, store, faults) = breakable().await;
    run(&*store, claim("s", "before")).await;
    let (large, call) = (json!("x".repeat(1 << 20)), claim("s", "large"));
    let settled = Settlement { envelope: envelope("large", large), ..settlement(&call) };
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    faults.set(Fault::DiskFull);
    let error = store.settle(settled.clone()).await.unwrap_err();
    assert!(error.to_string().contains("full"), "{error}");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::InDoubt));
    faults.set(Fault::None);
    store.settle(settled.clone()).await.unwrap();
    run(&*store, claim("s", "after")).await;
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.claim(call).await, Ok(Claimed::Finished(settled.envelope)));
    let expected = ["before", "large", "after"].map(|call| entry("s", call));
    assert_eq!(entries(&verified(&*store).await), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_that_does_not_fit_takes_no_other_with_it() {
    let (_harness, store, faults) = breakable().await;
    let large = claim("s", "large");
    assert_eq!(store.claim(large.clone()).await, Ok(Claimed::New));
    let large = Settlement { envelope: envelope("large", json!("x".repeat(1 << 20))), ..settlement(&large) };
    faults.set(Fault::DiskFull);
    let (refused, taken) = tokio::join!(store.settle(large), store.claim(claim("s", "another")));
    assert!(is_unavailable(refused));
    // The last page of a table has room for a row.
    assert_eq!(taken, Ok(Claimed::New));
}

#[tokio::test]
async fn what_nobody_waited_for_is_told_to_whoever_flushes() {
    let (harness, store, faults) = breakable().await;
    store.append(entry("s", "first")).await.unwrap();
    store.flush().await.unwrap();
    faults.set(Fault::CommitFails);
    store.append(entry("s", "lost")).await.unwrap();
    assert!(is_unavailable(store.flush().await));
    faults.set(Fault::None);
    store.append(entry("s", "last")).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(entries(&verified(&*store).await), [entry("s", "first"), entry("s", "last")]);
    drop(store);
    let harness = harness.reopen().await;
    assert_eq!(verified(&*harness.store()).await.len(), 2);
}

#[tokio::test]
async fn a_store_without_its_writer_refuses_everything() {
    let (harness, store, faults) = breakable().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    faults.set(Fault::Dies);
    assert!(is_unavailable(store.settle(settlement(&call)).await));
    faults.set(Fault::None);
    let relaxed = Claim { durability: Durability::Relaxed, ..idempotent("s", "another") };
    assert!(is_unavailable(store.claim(relaxed).await));
    assert!(is_unavailable(store.claim(claim("s", "third")).await));
    assert!(is_unavailable(store.begin_turn("s", NOW).await));
    assert!(is_unavailable(store.append(entry("s", "x")).await));
    assert!(is_unavailable(store.flush().await));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.claim(call).await, Ok(Claimed::InDoubt));
    assert_eq!(store.claim(claim("s", "third")).await, Ok(Claimed::New));
}

/// Lets a claim begin, and then nobody waits for it any more.
async fn leave(store: &Sqlite, call: Claim) {
    let mut claimed = pin!(store.claim(call));
    let polled = poll_fn(|context| Poll::Ready(claimed.as_mut().poll(context))).await;
    assert!(polled.is_pending(), "a committed claim waits for the disk");
}

#[tokio::test]
async fn a_claim_that_nobody_waits_for_may_come_again() {
    let (harness, store, _faults) = breakable().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    let call = Claim { budget: Some((0, 1)), ..confirmed(&asked) };
    leave(&store, call.clone()).await;
    assert_eq!(store.recorded("s", "call").await, Ok(None));
    store.flush().await.unwrap();
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.recorded("s", "call").await, Ok(None));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 0);
    leave(&store, call.clone()).await;
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    assert_eq!(harness.store().claim(call).await, Ok(Claimed::InDoubt));
}

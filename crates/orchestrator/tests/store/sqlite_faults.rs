//! Disk failures: nothing is acknowledged that is not on disk, and the store recovers.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::json;
use toolwright_orchestrator::store::sqlite::{Fault, FaultSwitch, Options};
use toolwright_orchestrator::store::{
    AuditEntry, Backend, Claim, ClaimOutcome, ConfirmationStatus, ConversationLog, Durability, Error,
    ExecutionStatus, LogEntry, LogOpening, Result, SessionRecord, Settlement, Sqlite,
};

use crate::audit_rules::{entries, verified};
use crate::sqlite_store::SqliteStore;
use crate::support::{
    ALL, NOW, Restart, StoreFixture, approve, approved, claim, confirmation, confirmed, entry, envelope,
    idempotent, over_budget, retrieval, retrieval_charge, retrievals, run, session, settlement, status,
};

/// A store with the session `s`, and its fault switch.
async fn with_faults() -> (SqliteStore, Arc<Sqlite>, FaultSwitch) {
    let faults = FaultSwitch::default();
    let fixture = SqliteStore::with(Options { faults: faults.clone(), ..Options::default() });
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    (fixture, store, faults)
}

fn is_unavailable<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Unavailable(_)))
}

/// The entry about a gap.
fn gap(entries: u64, from: i64, to: i64) -> AuditEntry {
    AuditEntry {
        at: to,
        event: "gap".to_owned(),
        outcome: "UNAVAILABLE".to_owned(),
        data: json!({ "entries": entries, "from": from, "to": to }),
        ..AuditEntry::default()
    }
}

#[tokio::test]
async fn a_failed_claim_costs_nothing_and_can_be_repeated() {
    let (fixture, store, faults) = with_faults().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    let call = Claim { charges: retrieval_charge(1), ..confirmed(&approval) };
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.claim(call.clone()).await));
    assert_eq!(store.execution("s", "call").await, Ok(None));
    assert_eq!(retrievals(&*store).await, 0);
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), approval);
    faults.set(Fault::None);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(retrieval("s", "more", 1)).await, Ok(over_budget(1)));
    store.settle(settlement(&call)).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert!(matches!(store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().status, ConfirmationStatus::Used);
}

#[tokio::test]
async fn a_failed_claim_does_not_survive_a_restart() {
    let (fixture, store, faults) = with_faults().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.claim(confirmed(&approval)).await));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.execution("s", "call").await, Ok(None));
    assert_eq!(*store.approved_confirmations().await.unwrap()[0], approval);
    assert_eq!(store.claim(confirmed(&approval)).await, Ok(ClaimOutcome::New));
}

#[tokio::test]
async fn failed_changes_are_rolled_back_in_memory() {
    let (fixture, store, faults) = with_faults().await;
    store.create_confirmation(confirmation("pending", "s", "a")).await.unwrap();
    let before = store.session("s").await.unwrap().unwrap();
    let changed = SessionRecord { state: json!(1), ..(*before).clone() };
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.create_session(session("t"), Durability::Committed).await));
    assert!(is_unavailable(store.update_session(&changed).await));
    assert!(is_unavailable(store.create_confirmation(confirmation("q", "s", "b")).await));
    assert!(is_unavailable(store.decide_confirmation("pending", approve("ada"), NOW).await));
    assert_eq!(store.session("t").await, Ok(None));
    assert_eq!(store.session("s").await.unwrap().unwrap(), before);
    assert_eq!(store.confirmation("q").await, Ok(None));
    assert_eq!(store.pending_confirmations(ALL).await.unwrap().len(), 1);
    faults.set(Fault::None);
    store.create_session(session("t"), Durability::Committed).await.unwrap();
    assert_eq!(store.update_session(&changed).await, Ok(true));
    store.create_confirmation(confirmation("q", "s", "b")).await.unwrap();
    assert!(store.decide_confirmation("pending", approve("ada"), NOW).await.unwrap().is_some());
    let after = store.session("s").await.unwrap().unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.session("s").await.unwrap().unwrap(), after);
    assert_eq!(store.session("t").await.unwrap().unwrap().id, "t");
    assert_eq!(store.pending_confirmations(ALL).await.unwrap()[0].id, "q");
    assert_eq!(store.approved_confirmations().await.unwrap()[0].id, "pending");
}

#[tokio::test]
async fn a_failed_settlement_leaves_the_execution_in_doubt() {
    let (fixture, store, faults) = with_faults().await;
    let (once, again) = (claim("s", "once"), idempotent("s", "again"));
    for call in [&once, &again] {
        assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    }
    faults.set(Fault::CommitFails);
    for call in [&once, &again] {
        assert!(is_unavailable(store.settle(settlement(call)).await));
    }
    faults.set(Fault::None);
    assert_eq!(store.claim(once.clone()).await, Ok(ClaimOutcome::InDoubt));
    assert_eq!(status(&*store, "s", "again").await, Some(ExecutionStatus::Abandoned));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.claim(once).await, Ok(ClaimOutcome::InDoubt));
    run(&*store, again).await;
    assert_eq!(entries(&verified(&*store).await), [gap(2, NOW, NOW), entry("s", "again")]);
}

#[tokio::test]
async fn the_owner_can_settle_again_after_a_disk_failure() {
    let (fixture, store, faults) = with_faults().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.settle(settlement(&call)).await));
    faults.set(Fault::None);
    store.settle(settlement(&call)).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(
        fixture.store().claim(call.clone()).await,
        Ok(ClaimOutcome::Finished(settlement(&call).envelope))
    );
}

#[tokio::test]
async fn a_store_recovers_from_a_full_disk() {
    let (fixture, store, faults) = with_faults().await;
    run(&*store, claim("s", "before")).await;
    let (large, call) = (json!("x".repeat(1 << 20)), claim("s", "large"));
    let settled = Settlement { envelope: envelope("large", large), ..settlement(&call) };
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    faults.set(Fault::DiskFull);
    let error = store.settle(settled.clone()).await.unwrap_err();
    assert!(error.to_string().contains("full"), "{error}");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::InDoubt));
    faults.set(Fault::None);
    store.settle(settled.clone()).await.unwrap();
    run(&*store, claim("s", "after")).await;
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Finished(settled.envelope)));
    // The entry that was written again after all is counted as well.
    let [before, large, after] = ["before", "large", "after"].map(|call| entry("s", call));
    assert_eq!(entries(&verified(&*store).await), [before, gap(1, NOW, NOW), large, after]);
}

#[tokio::test]
async fn a_result_is_recorded_also_if_the_write_of_its_claim_was_lost() {
    let (fixture, store, faults) = with_faults().await;
    let call = Claim { durability: Durability::Relaxed, ..claim("s", "c") };
    faults.set(Fault::CommitFails);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert!(is_unavailable(store.flush().await));
    faults.set(Fault::None);
    let settled = settlement(&call);
    store.settle(settled.clone()).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().claim(call).await, Ok(ClaimOutcome::Finished(settled.envelope)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_failed_change_does_not_fail_the_others() {
    let (_fixture, store, faults) = with_faults().await;
    let large = claim("s", "large");
    assert_eq!(store.claim(large.clone()).await, Ok(ClaimOutcome::New));
    let large = Settlement { envelope: envelope("large", json!("x".repeat(1 << 20))), ..settlement(&large) };
    faults.set(Fault::DiskFull);
    let (failed, claimed) = tokio::join!(store.settle(large), store.claim(claim("s", "another")));
    assert!(is_unavailable(failed));
    // A row fits in the last page of its table.
    assert_eq!(claimed, Ok(ClaimOutcome::New));
}

#[tokio::test]
async fn a_flush_reports_a_lost_relaxed_change() {
    let (fixture, store, faults) = with_faults().await;
    store.append_audit(entry("s", "first")).await.unwrap();
    store.flush().await.unwrap();
    faults.set(Fault::CommitFails);
    store.append_audit(entry("s", "lost")).await.unwrap();
    assert!(is_unavailable(store.flush().await));
    faults.set(Fault::None);
    store.append_audit(entry("s", "last")).await.unwrap();
    store.flush().await.unwrap();
    let expected = [entry("s", "first"), gap(1, NOW, NOW), entry("s", "last")];
    assert_eq!(entries(&verified(&*store).await), expected);
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(verified(&*fixture.store()).await.len(), 3);
}

#[tokio::test]
async fn lost_audit_entries_are_counted_in_the_audit_once_it_can_be_written() {
    let (fixture, store, faults) = with_faults().await;
    let at = |at: i64| AuditEntry { at, ..entry("s", "lost") };
    store.append_audit(entry("s", "before")).await.unwrap();
    store.flush().await.unwrap();
    faults.set(Fault::CommitFails);
    for time in [NOW + 30, NOW + 10] {
        store.append_audit(at(time)).await.unwrap();
        assert!(is_unavailable(store.flush().await));
    }
    // An attempt to write the gap itself fails as well, and loses nothing.
    store.append_audit(at(NOW + 20)).await.unwrap();
    assert!(is_unavailable(store.flush().await));
    faults.set(Fault::None);
    // Any write shows that writing works again.
    store.create_session(session("t"), Durability::Committed).await.unwrap();
    let expected = [entry("s", "before"), gap(3, NOW + 10, NOW + 30)];
    assert_eq!(entries(&verified(&*store).await), expected);
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(entries(&verified(&*fixture.store()).await), expected);
}

#[tokio::test]
async fn a_gap_is_written_before_the_store_closes() {
    let (fixture, store, faults) = with_faults().await;
    faults.set(Fault::CommitFails);
    store.append_audit(entry("s", "lost")).await.unwrap();
    assert!(is_unavailable(store.flush().await));
    faults.set(Fault::None);
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(entries(&verified(&*fixture.store()).await), [gap(1, NOW, NOW)]);
}

#[tokio::test]
async fn a_write_test_tells_whether_the_file_can_be_written() {
    let (fixture, store, faults) = with_faults().await;
    let log = fixture.path().with_file_name("state.db-wal");
    let size = || std::fs::metadata(&log).unwrap().len();
    let before = size();
    store.test_write().await.unwrap();
    assert!(size() > before, "nothing was written");
    faults.set(Fault::CommitFails);
    assert!(is_unavailable(store.test_write().await));
    faults.set(Fault::None);
    store.test_write().await.unwrap();
    assert_eq!(verified(&*store).await, [], "a test leaves no audit entry");
}

#[tokio::test]
async fn a_store_without_its_writer_refuses_every_write() {
    let (fixture, store, faults) = with_faults().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    faults.set(Fault::WriterDies);
    assert!(is_unavailable(store.settle(settlement(&call)).await));
    faults.set(Fault::None);
    let relaxed = Claim { durability: Durability::Relaxed, ..idempotent("s", "another") };
    assert!(is_unavailable(store.claim(relaxed).await));
    assert!(is_unavailable(store.claim(claim("s", "third")).await));
    assert!(is_unavailable(store.begin_turn("s").await));
    assert!(is_unavailable(store.append_audit(entry("s", "x")).await));
    assert!(is_unavailable(store.flush().await));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.claim(call).await, Ok(ClaimOutcome::InDoubt));
    assert_eq!(store.claim(claim("s", "third")).await, Ok(ClaimOutcome::New));
}

/// Starts a claim, and drops it before it is on disk.
async fn start_and_drop(store: &Sqlite, faults: &FaultSwitch, call: Claim) {
    faults.set(Fault::CommitWaits);
    {
        let mut claimed = pin!(store.claim(call));
        let polled = poll_fn(|context| Poll::Ready(claimed.as_mut().poll(context))).await;
        assert!(polled.is_pending(), "a committed claim waits for the disk");
    }
    faults.set(Fault::None);
}

#[tokio::test]
async fn a_claim_whose_caller_went_away_can_be_repeated() {
    let (fixture, store, faults) = with_faults().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    let call = Claim { charges: retrieval_charge(1), ..confirmed(&approval) };
    start_and_drop(&store, &faults, call.clone()).await;
    assert_eq!(store.execution("s", "call").await, Ok(None));
    store.flush().await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.execution("s", "call").await, Ok(None));
    assert_eq!(retrievals(&*store).await, 0);
    start_and_drop(&store, &faults, call.clone()).await;
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().claim(call).await, Ok(ClaimOutcome::InDoubt));
}

#[tokio::test]
async fn an_entry_is_not_acknowledged_without_its_session() {
    let (fixture, store, faults) = with_faults().await;
    faults.set(Fault::CommitFails);
    store.create_session(session("t"), Durability::Relaxed).await.unwrap();
    // The write of the session has failed for good.
    assert!(is_unavailable(store.flush().await));
    faults.set(Fault::None);
    let append = |position: u64| {
        let entries = vec![LogEntry { position, body: "a".into() }];
        store.append_log("t", "w", entries, Durability::Committed)
    };
    store.open_log("t", "w").await.unwrap();
    assert!(is_unavailable(append(1).await));
    // The next change of the session writes it again.
    store.begin_turn("t").await.unwrap();
    assert_eq!(append(2).await, Ok(true));
    drop(store);
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().log_entries("t", 0, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_end_of_a_log_is_known_again_after_a_failed_write() {
    let (_fixture, store, faults) = with_faults().await;
    store.open_log("s", "w").await.unwrap();
    let append = |position: u64, durability: Durability| {
        let entries = vec![LogEntry { position, body: "a".into() }];
        store.append_log("s", "w", entries, durability)
    };
    assert_eq!(append(3, Durability::Committed).await, Ok(true));
    faults.set(Fault::CommitFails);
    assert_eq!(append(4, Durability::Relaxed).await, Ok(true));
    assert!(is_unavailable(append(5, Durability::Committed).await));
    faults.set(Fault::None);
    assert_eq!(store.open_log("s", "w").await, Ok(LogOpening::Opened { end: 3 }));
    assert_eq!(append(9, Durability::Relaxed).await, Ok(true));
    assert_eq!(store.open_log("s", "w").await, Ok(LogOpening::Opened { end: 9 }));
    assert_eq!(store.log_entries("s", 3, 9).await.unwrap().len(), 1);
}

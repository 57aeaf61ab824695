//! Rules of stores that come back: what a crash leaves.

use serde_json::json;
use toolwright_orchestrator::store::{
    Answer, Backend, Claim, Claimed, Confirmation, Durability, SessionRecord, SessionStanding, Standing,
    Status,
};

use crate::audit::{entries, verified};
use crate::harness::{
    DAY, HOUR, NOW, Reopen, approve, approved, claim, confirmed, entry, idempotent, question, retrieval, run,
    session, settlement, status, swept, with_session,
};

pub async fn sessions_come_back<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let changed = SessionRecord { state: json!({"a": [1, 2.5, "\u{1F600}"]}), ..session("s") };
    assert_eq!(store.update_session(&changed).await, Ok(true));
    let before = store.session("s").await.unwrap().unwrap();
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.session("s").await.unwrap().unwrap(), before);
    assert_eq!(store.update_session(&changed).await, Ok(false));
    assert_eq!(store.update_session(&before).await, Ok(true));
    assert!(store.create_session(session("s")).await.is_err());
}

pub async fn a_turn_comes_back_once_it_is_flushed<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    store.begin_turn("s", NOW).await.unwrap();
    let begun = store.begin_turn("s", NOW).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let harness = harness.reopen().await;
    assert_eq!(harness.store().session("s").await.unwrap().unwrap(), begun);
}

pub async fn what_was_spent_stays_spent<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    store.begin_turn("s", NOW).await.unwrap();
    assert_eq!(store.claim(retrieval("s", "a", 1, 3)).await, Ok(Claimed::New));
    let read = store.session("s").await.unwrap().unwrap();
    assert_eq!(store.update_session(&read).await, Ok(true));
    run(&*store, retrieval("s", "b", 1, 3)).await;
    assert_eq!(store.claim(claim("s", "free")).await, Ok(Claimed::New));
    assert_eq!(store.claim(retrieval("s", "made in another turn", 0, 3)).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 3);
    // It was paid for before the crash.
    assert_eq!(store.claim(retrieval("s", "a", 1, 2)).await, Ok(Claimed::New));
    assert_eq!(store.claim(retrieval("s", "c", 1, 4)).await, Ok(Claimed::New));
    assert_eq!(store.claim(retrieval("s", "d", 1, 4)).await, Ok(Claimed::OverBudget { used: 4 }));
    assert_eq!(store.begin_turn("s", NOW).await.unwrap().retrievals, 0);
}

pub async fn a_settled_call_gives_its_envelope_again<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    let envelope = run(&*store, call.clone()).await;
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    let standing = Standing { digest: call.digest, status: Status::Finished(envelope.clone()) };
    assert_eq!(store.recorded("s", "call").await, Ok(Some(standing)));
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::Finished(envelope)));
    assert_eq!(store.claim(Claim { digest: [8; 32], ..call }).await, Ok(Claimed::Conflict));
}

pub async fn an_unfinished_idempotent_call_may_run_again<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let call = idempotent("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(status(&*store, "s", "call").await, Some(Status::Abandoned));
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(other).await, Ok(Claimed::Conflict));
    let envelope = run(&*store, call.clone()).await;
    drop(store);
    let harness = harness.reopen().await;
    assert_eq!(harness.store().claim(call).await, Ok(Claimed::Finished(envelope)));
}

pub async fn any_other_unfinished_call_is_in_doubt_for_ever<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    drop(store);
    let mut harness = harness;
    for _ in 0..3 {
        harness = harness.reopen().await;
        let store = harness.store();
        assert_eq!(store.claim(call.clone()).await, Ok(Claimed::InDoubt));
        assert_eq!(status(&*store, "s", "call").await, Some(Status::InDoubt));
    }
}

pub async fn a_call_in_doubt_is_a_conflict_for_other_arguments<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    let other = Claim { digest: [8; 32], ..call };
    assert_eq!(harness.store().claim(other).await, Ok(Claimed::Conflict));
}

pub async fn questions_come_back<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let waiting = store.ask(question("waiting", "s", "a")).await.unwrap();
    let yes = approved(&*store, question("yes", "s", "b")).await;
    let used = approved(&*store, question("used", "s", "c")).await;
    assert_eq!(store.claim(confirmed(&used)).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.pending(None).await.unwrap()[..], *std::slice::from_ref(&waiting));
    assert_eq!(store.confirmation("waiting").await, Ok(Some(waiting)));
    let open = store.approved().await.unwrap();
    assert_eq!((open.len(), &*open[0]), (1, &yes));
    let again = Confirmation { token_hash: [1; 32], ..question("again", "s", "a") };
    assert_eq!(store.ask(again).await.unwrap().id, "waiting", "it still waits");
    assert!(store.decide("waiting", approve("ada"), NOW).await.unwrap().is_some());
    assert_eq!(store.claim(confirmed(&yes)).await, Ok(Claimed::New));
}

pub async fn an_approval_is_not_used_twice<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    let call = confirmed(&asked);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert!(store.approved().await.unwrap().is_empty());
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().answer, Answer::Used);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::InDoubt));
    let again = Claim { execution: "again".into(), ..call };
    assert_eq!(store.claim(again).await, Ok(Claimed::Unapproved));
}

pub async fn an_abandoned_call_needs_no_second_approval<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    let call = Claim { idempotent: true, ..confirmed(&asked) };
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    assert_eq!(store.claim(call).await, Ok(Claimed::Running));
}

pub async fn an_expired_session_stays_expired<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    store.ask(question("q", "s", "call")).await.unwrap();
    assert_eq!(swept(&*store, NOW + HOUR).await, (1, 1));
    store.flush().await.unwrap();
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.session("s").await.unwrap().unwrap().standing, SessionStanding::Expired);
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().answer, Answer::Expired);
    assert_eq!(swept(&*store, NOW + HOUR).await, (0, 0));
}

pub async fn the_audit_goes_on<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    run(&*store, claim("s", "first")).await;
    let before = verified(&*store).await;
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    run(&*store, claim("s", "second")).await;
    let rows = verified(&*store).await;
    assert_eq!(entries(&rows), [entry("s", "first"), entry("s", "second")]);
    assert_eq!(rows[0], before[0]);
    // Where one process writes at a time, it goes on with the chain that it finds; elsewhere it begins its own.
    let position = if rows[0].chain == rows[1].chain { 2 } else { 1 };
    assert_eq!(rows[1].position, position);
    assert_eq!(store.audit(rows[0].number, 9).await.unwrap(), rows[1..]);
}

pub async fn relaxed_changes_are_there_once_they_are_flushed<H: Reopen>() {
    let (harness, store) = with_session::<H>().await;
    let done = Claim { durability: Durability::Relaxed, ..idempotent("s", "done") };
    let begun = Claim { execution: "begun".into(), ..done.clone() };
    let envelope = run(&*store, done.clone()).await;
    assert_eq!(store.claim(begun.clone()).await, Ok(Claimed::New));
    store.append(entry("s", "apart")).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.claim(done).await, Ok(Claimed::Finished(envelope)));
    assert_eq!(status(&*store, "s", "begun").await, Some(Status::Abandoned));
    assert_eq!(entries(&verified(&*store).await), [entry("s", "done"), entry("s", "apart")]);
    // The new owner settles what it claims anew.
    assert_eq!(store.claim(begun.clone()).await, Ok(Claimed::New));
    store.settle(settlement(&begun)).await.unwrap();
    assert!(matches!(store.claim(begun).await, Ok(Claimed::Finished(_))));
}

pub async fn what_was_forgotten_stays_forgotten<H: Reopen>() {
    let harness = H::fresh().await;
    let store = harness.store();
    let long = SessionRecord { expires_at: NOW + 7 * DAY, ..session("s") };
    store.create_session(long).await.unwrap();
    store.create_session(session("short")).await.unwrap();
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
    let harness = harness.reopen().await;
    let store = harness.store();
    assert_eq!(store.session("short").await, Ok(None));
    for number in 0..103 {
        let known = store.recorded("s", &format!("call {number}")).await.unwrap().is_some();
        assert_eq!(known, number >= 3, "call {number}");
    }
    assert_eq!(verified(&*store).await.len(), 104);
}

//! Rules about claims and settlements.

use serde_json::json;
use toolwright_contract::{ErrorKind, Failure};
use toolwright_orchestrator::store::{
    Backend, Claim, Claimed, Durability, Error, Settled, Settlement, Standing, Status,
};

use crate::harness::{
    Harness, NOW, claim, envelope, failure, idempotent, retrieval, run, session, settlement, status,
    with_session,
};

pub async fn a_call_is_claimed_once<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for (call, durability) in [("a", Durability::Committed), ("b", Durability::Relaxed)] {
        for call in [claim("s", call), idempotent("s", &format!("idempotent {call}"))] {
            let call = Claim { durability, ..call };
            assert_eq!(store.recorded("s", &call.execution).await, Ok(None));
            assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
            assert_eq!(store.claim(call.clone()).await, Ok(Claimed::Running));
            let standing = Standing { digest: call.digest, status: Status::Running };
            assert_eq!(store.recorded("s", &call.execution).await, Ok(Some(standing)));
        }
    }
}

pub async fn ids_belong_to_their_session<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    store.create_session(session("t")).await.unwrap();
    let recorded = run(&*store, claim("s", "call")).await;
    assert_eq!(store.recorded("t", "call").await, Ok(None));
    assert_eq!(store.claim(claim("t", "call")).await, Ok(Claimed::New));
    assert_eq!(store.claim(claim("s", "call")).await, Ok(Claimed::Finished(recorded)));
}

pub async fn an_id_with_other_arguments_is_a_conflict<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    assert_eq!(store.claim(other.clone()).await, Ok(Claimed::Conflict));
    store.settle(settlement(&call)).await.unwrap();
    assert_eq!(store.claim(other).await, Ok(Claimed::Conflict));
    assert!(matches!(store.claim(call).await, Ok(Claimed::Finished(_))));
}

pub async fn a_claim_needs_its_session<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let missing = Error::NoSession("nobody".to_owned());
    assert_eq!(store.claim(claim("nobody", "call")).await, Err(missing));
}

pub async fn the_budget_is_spent_by_new_claims_alone<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let used = async || store.session("s").await.unwrap().unwrap().retrievals;
    let call = retrieval("s", "a", 0, 2);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    assert_eq!(used().await, 1);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::Running));
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(other).await, Ok(Claimed::Conflict));
    store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(store.claim(call).await, Ok(Claimed::Finished(_))));
    let unapproved = Claim { confirmation: Some("none".to_owned()), ..retrieval("s", "b", 0, 2) };
    assert_eq!(store.claim(unapproved).await, Ok(Claimed::Unapproved));
    assert_eq!(used().await, 1);
}

pub async fn a_call_beyond_the_budget_leaves_nothing_behind<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for call in ["a", "b"] {
        assert_eq!(store.claim(retrieval("s", call, 0, 2)).await, Ok(Claimed::New));
    }
    assert_eq!(store.claim(retrieval("s", "c", 0, 2)).await, Ok(Claimed::OverBudget { used: 2 }));
    assert_eq!(store.recorded("s", "c").await, Ok(None));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 2);
    // What runs already is not refused: its id was paid for.
    assert_eq!(store.claim(retrieval("s", "a", 0, 2)).await, Ok(Claimed::Running));
    assert_eq!(store.claim(retrieval("s", "c", 0, 3)).await, Ok(Claimed::New));
}

pub async fn calls_without_a_budget_cost_nothing_and_late_ones_cost_the_current_turn<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    store.begin_turn("s", NOW).await.unwrap();
    assert_eq!(store.claim(claim("s", "free")).await, Ok(Claimed::New));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 0);
    assert_eq!(store.claim(retrieval("s", "late", 0, 2)).await, Ok(Claimed::New));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 1);
    assert_eq!(store.claim(retrieval("s", "paid", 1, 2)).await, Ok(Claimed::New));
    assert_eq!(store.claim(retrieval("s", "late too", 0, 2)).await, Ok(Claimed::OverBudget { used: 2 }));
    assert_eq!(store.claim(claim("s", "free too")).await, Ok(Claimed::New));
    assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 2);
}

pub async fn a_settled_call_gives_its_envelope<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for (call, durability) in [("a", Durability::Committed), ("b", Durability::Relaxed)] {
        let call = Claim { durability, ..claim("s", call) };
        let envelope = run(&*store, call.clone()).await;
        let standing = Standing { digest: call.digest, status: Status::Finished(envelope.clone()) };
        assert_eq!(store.recorded("s", &call.execution).await, Ok(Some(standing)));
        assert_eq!(store.claim(call).await, Ok(Claimed::Finished(envelope)));
    }
}

pub async fn the_first_settlement_stands<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    let first = run(&*store, call.clone()).await;
    let second = Settlement { envelope: envelope("call", json!("late")), ..settlement(&call) };
    assert_eq!(store.settle(second).await, Ok(Settled::Earlier(first.clone())));
    assert_eq!(status(&*store, "s", "call").await, Some(Status::Finished(first.clone())));
    assert_eq!(store.claim(call).await, Ok(Claimed::Finished(first)));
}

pub async fn what_was_never_claimed_cannot_be_settled<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let never = settlement(&claim("s", "never"));
    assert_eq!(store.settle(never).await, Ok(Settled::Unclaimed));
    assert_eq!(store.recorded("s", "never").await, Ok(None));
    assert_eq!(store.claim(claim("s", "never")).await, Ok(Claimed::New));
    let nobody = settlement(&claim("nobody", "never"));
    assert_eq!(store.settle(nobody).await, Err(Error::NoSession("nobody".to_owned())));
}

pub async fn a_failed_envelope_comes_back_whole<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    let mut unforeseen = Failure::unforeseen("the mail server hung up \u{0}\u{2028}").suggest("ask a person");
    unforeseen.kind = ErrorKind::Internal;
    unforeseen.details = Some(Box::new(json!({"line": 3, "tiny": 1e-300, "big": u64::MAX})));
    let envelope = failure("call", unforeseen);
    store.settle(Settlement { envelope: envelope.clone(), ..settlement(&call) }).await.unwrap();
    assert_eq!(store.claim(call).await, Ok(Claimed::Finished(envelope)));
}

pub async fn an_idempotent_call_that_is_released_may_be_claimed_anew<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let call = retrieval("s", "call", 0, 1);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    store.release("s", "call").await.unwrap();
    assert_eq!(status(&*store, "s", "call").await, Some(Status::Abandoned));
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(other).await, Ok(Claimed::Conflict));
    // It was paid for when it was first claimed.
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::Running));
    store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(store.claim(call).await, Ok(Claimed::Finished(_))));
}

pub async fn nothing_else_can_be_released<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    assert_eq!(store.claim(claim("s", "call")).await, Ok(Claimed::New));
    let done = run(&*store, idempotent("s", "done")).await;
    for (session, execution) in [("s", "call"), ("s", "done"), ("s", "never"), ("nobody", "call")] {
        assert_eq!(store.release(session, execution).await, Ok(()), "{session} {execution}");
    }
    assert_eq!(store.claim(claim("s", "call")).await, Ok(Claimed::Running));
    assert_eq!(store.claim(idempotent("s", "done")).await, Ok(Claimed::Finished(done)));
    assert_eq!(store.recorded("s", "never").await, Ok(None));
}

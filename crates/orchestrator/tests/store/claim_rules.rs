//! Rules about claims and settlements.

use serde_json::json;
use toolwright_contract::{ErrorKind, Failure};
use toolwright_orchestrator::store::{
    Backend, Claim, ClaimOutcome, Durability, Error, ExecutionRecord, ExecutionStatus, SettleOutcome,
    Settlement,
};

use crate::support::{
    StoreFixture, claim, envelope, failure, idempotent, retrieval, run, session, settlement, status,
    with_session,
};

pub async fn an_execution_is_claimed_once<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for (call, durability) in [("a", Durability::Committed), ("b", Durability::Relaxed)] {
        for call in [claim("s", call), idempotent("s", &format!("idempotent {call}"))] {
            let call = Claim { durability, ..call };
            assert_eq!(store.execution("s", &call.execution).await, Ok(None));
            assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
            assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::Running));
            let record =
                ExecutionRecord { digest: call.digest, args: None, status: ExecutionStatus::Running };
            assert_eq!(store.execution("s", &call.execution).await, Ok(Some(record)));
        }
    }
}

pub async fn execution_ids_are_separate_for_each_session<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_session(session("t"), Durability::Committed).await.unwrap();
    let recorded = run(&*store, claim("s", "call")).await;
    assert_eq!(store.execution("t", "call").await, Ok(None));
    assert_eq!(store.claim(claim("t", "call")).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(claim("s", "call")).await, Ok(ClaimOutcome::Finished(recorded)));
}

pub async fn an_id_with_other_arguments_is_a_conflict<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(other.clone()).await, Ok(ClaimOutcome::Conflict));
    store.settle(settlement(&call)).await.unwrap();
    assert_eq!(store.claim(other).await, Ok(ClaimOutcome::Conflict));
    assert!(matches!(store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
}

pub async fn a_claim_needs_its_session<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let missing = Error::NoSession("unknown".to_owned());
    assert_eq!(store.claim(claim("unknown", "call")).await, Err(missing));
}

pub async fn a_settled_execution_returns_its_envelope<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for (call, durability) in [("a", Durability::Committed), ("b", Durability::Relaxed)] {
        let call = Claim { durability, ..claim("s", call) };
        let envelope = run(&*store, call.clone()).await;
        let record = ExecutionRecord {
            digest: call.digest,
            args: settlement(&call).args,
            status: ExecutionStatus::Finished(envelope.clone()),
        };
        assert_eq!(store.execution("s", &call.execution).await, Ok(Some(record)));
        assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Finished(envelope)));
    }
}

pub async fn the_first_settlement_wins<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    let first = run(&*store, call.clone()).await;
    let second = Settlement { envelope: envelope("call", json!("late")), ..settlement(&call) };
    assert_eq!(store.settle(second).await, Ok(SettleOutcome::AlreadySettled(first.clone())));
    assert_eq!(status(&*store, "s", "call").await, Some(ExecutionStatus::Finished(first.clone())));
    assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Finished(first)));
}

pub async fn an_unclaimed_execution_cannot_be_settled<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let never = settlement(&claim("s", "never"));
    assert_eq!(store.settle(never).await, Ok(SettleOutcome::Unclaimed));
    assert_eq!(store.execution("s", "never").await, Ok(None));
    assert_eq!(store.claim(claim("s", "never")).await, Ok(ClaimOutcome::New));
    let unknown = settlement(&claim("unknown", "never"));
    assert_eq!(store.settle(unknown).await, Err(Error::NoSession("unknown".to_owned())));
}

pub async fn an_envelope_with_an_error_is_stored_unchanged<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let mut unforeseen = Failure::unforeseen("the mail server hung up \u{0}\u{2028}").suggest("ask a person");
    unforeseen.kind = ErrorKind::Internal;
    unforeseen.details = Some(Box::new(json!({"line": 3, "tiny": 1e-300, "big": u64::MAX})));
    let envelope = failure("call", unforeseen);
    store.settle(Settlement { envelope: envelope.clone(), ..settlement(&call) }).await.unwrap();
    assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Finished(envelope)));
}

pub async fn a_released_idempotent_execution_can_be_claimed_again<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = retrieval("s", "call", 1);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    store.release("s", "call").await.unwrap();
    assert_eq!(status(&*store, "s", "call").await, Some(ExecutionStatus::Abandoned));
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(other).await, Ok(ClaimOutcome::Conflict));
    // It was charged when it was first claimed.
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::Running));
    store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
}

pub async fn only_running_idempotent_executions_can_be_released<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    assert_eq!(store.claim(claim("s", "call")).await, Ok(ClaimOutcome::New));
    let done = run(&*store, idempotent("s", "done")).await;
    for (session, execution) in [("s", "call"), ("s", "done"), ("s", "never"), ("unknown", "call")] {
        assert_eq!(store.release(session, execution).await, Ok(()), "{session} {execution}");
    }
    assert_eq!(store.claim(claim("s", "call")).await, Ok(ClaimOutcome::Running));
    assert_eq!(store.claim(idempotent("s", "done")).await, Ok(ClaimOutcome::Finished(done)));
    assert_eq!(store.execution("s", "never").await, Ok(None));
}

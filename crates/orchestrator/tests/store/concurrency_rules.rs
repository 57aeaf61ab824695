//! Rules about concurrent callers: one of many wins.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolwright_orchestrator::store::{
    Backend, ClaimOutcome, ConfirmationRecord, ConfirmationStatus, Decision, Durability, SessionRecord,
    SettleOutcome, Settlement,
};

use crate::audit_rules::verified;
use crate::support::{
    ALL, NOW, StoreFixture, approve, approved, claim, confirmation, confirmed, envelope, over_budget,
    retrieval, retrievals, session, settlement, with_session,
};

const MANY: usize = 64;

/// Runs an operation many times at once, and collects the outcomes.
async fn run_concurrently<S, T, F>(store: &Arc<S>, act: impl Fn(Arc<S>, usize) -> F) -> Vec<T>
where
    S: Send + Sync + 'static,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(Barrier::new(MANY));
    let mut tasks = JoinSet::new();
    for number in 0..MANY {
        let (start, act) = (Arc::clone(&start), act(Arc::clone(store), number));
        tasks.spawn(async move {
            start.wait().await;
            act.await
        });
    }
    tasks.join_all().await
}

fn count<T: PartialEq>(outcomes: &[T], wanted: &T) -> usize {
    outcomes.iter().filter(|outcome| *outcome == wanted).count()
}

pub async fn one_of_many_claims_is_new<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for round in 0..20 {
        let call = claim("s", &format!("call {round}"));
        let outcomes = run_concurrently(&store, |store, _| {
            let call = call.clone();
            async move { store.claim(call).await.unwrap() }
        });
        let outcomes = outcomes.await;
        assert_eq!(count(&outcomes, &ClaimOutcome::New), 1);
        assert_eq!(count(&outcomes, &ClaimOutcome::Running), MANY - 1);
    }
}

pub async fn a_meter_never_exceeds_its_limit<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for turn in 1..=10 {
        store.begin_turn("s").await.unwrap();
        let outcomes = run_concurrently(&store, |store, number| async move {
            let call = retrieval("s", &format!("call {turn} {number}"), 5);
            store.claim(call).await.unwrap()
        });
        let outcomes = outcomes.await;
        assert_eq!(count(&outcomes, &ClaimOutcome::New), 5);
        assert_eq!(count(&outcomes, &over_budget(5)), MANY - 5);
        assert_eq!(retrievals(&*store).await, 5);
    }
}

pub async fn one_approval_admits_one_execution<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for round in 0..10 {
        let (id, execution) = (format!("q{round}"), format!("call {round}"));
        let approval = approved(&*store, confirmation(&id, "s", &execution)).await;
        let outcomes = run_concurrently(&store, |store, number| {
            let mut call = confirmed(&approval);
            if number % 4 == 3 {
                call.execution = format!("{execution} again").into();
            }
            async move { store.claim(call).await.unwrap() }
        });
        let outcomes = outcomes.await;
        assert_eq!(count(&outcomes, &ClaimOutcome::New), 1);
        assert_eq!(count(&outcomes, &ClaimOutcome::Unapproved), MANY / 4);
        assert_eq!(count(&outcomes, &ClaimOutcome::Running), MANY - MANY / 4 - 1);
        assert_eq!(store.confirmation(&id).await.unwrap().unwrap().status, ConfirmationStatus::Used);
    }
}

pub async fn one_of_many_deciders_wins<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for round in 0..10 {
        let id = format!("q{round}");
        store.create_confirmation(confirmation(&id, "s", &id)).await.unwrap();
        let outcomes = run_concurrently(&store, |store, number| {
            let (id, by) = (id.clone(), format!("person {number}"));
            let decision = if number % 2 == 0 {
                approve(&by)
            } else {
                Decision::Reject { by: by.as_str().into(), reason: None }
            };
            async move { store.decide_confirmation(&id, decision, NOW).await.unwrap() }
        });
        let winners: Vec<_> = outcomes.await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(store.confirmation(&id).await.unwrap().unwrap(), winners[0]);
    }
}

pub async fn one_of_many_updates_wins<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for revision in 0..10 {
        let outcomes = run_concurrently(&store, |store, number| async move {
            let changed = SessionRecord { revision, state: json!(number), ..session("s") };
            store.update_session(&changed).await.unwrap().then_some(number)
        });
        let winners: Vec<_> = outcomes.await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let after = store.session("s").await.unwrap().unwrap();
        assert_eq!((after.revision, &after.state), (revision + 1, &json!(winners[0])));
    }
}

pub async fn one_of_many_sessions_with_an_id_is_created<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let outcomes = run_concurrently(&store, |store, number| async move {
        let record = SessionRecord { client_id: format!("client {number}"), ..session("s") };
        store.create_session(record.clone(), Durability::Committed).await.ok().map(|()| record)
    });
    let winners: Vec<_> = outcomes.await.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(*store.session("s").await.unwrap().unwrap(), winners[0]);
}

pub async fn concurrent_requests_create_one_confirmation<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let outcomes = run_concurrently(&store, |store, number| async move {
        let token_hash = [u8::try_from(number).unwrap(); 32];
        let pending = ConfirmationRecord { token_hash, ..confirmation(&format!("q{number}"), "s", "call") };
        store.create_confirmation(pending).await.unwrap().id.clone()
    });
    let ids = outcomes.await;
    assert_eq!(count(&ids, &ids[0]), MANY, "{ids:?}");
    assert_eq!(store.pending_confirmations(ALL).await.unwrap().len(), 1);
}

pub async fn one_of_many_settlements_wins<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let outcomes = run_concurrently(&store, |store, number| {
        let settlement =
            Settlement { envelope: envelope("call", json!(number)), ..settlement(&claim("s", "call")) };
        async move { store.settle(settlement).await }
    });
    let outcomes = outcomes.await;
    let ClaimOutcome::Finished(first) = store.claim(call.clone()).await.unwrap() else {
        panic!("it was settled");
    };
    assert_eq!(count(&outcomes, &Ok(SettleOutcome::Recorded)), 1);
    assert_eq!(count(&outcomes, &Ok(SettleOutcome::AlreadySettled(first.clone()))), MANY - 1);
    assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Finished(first)));
    assert_eq!(verified(&*store).await.len(), 1);
}

pub async fn concurrent_sessions_are_independent<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let outcomes = run_concurrently(&store, |store, number| async move {
        let id = format!("s{number}");
        store.create_session(session(&id), Durability::Committed).await.unwrap();
        for call in 0..20 {
            let call = claim(&id, &format!("call {call}"));
            assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
            let settlement =
                Settlement { envelope: envelope(&call.execution, json!({"of": id})), ..settlement(&call) };
            store.settle(settlement.clone()).await.unwrap();
            assert_eq!(store.claim(call).await, Ok(ClaimOutcome::Finished(settlement.envelope)));
        }
    });
    outcomes.await;
    assert_eq!(verified(&*store).await.len(), MANY * 20);
}

//! Rules under contention: many at once, one wins.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolwright_orchestrator::store::{
    Answer, Backend, Claimed, Confirmation, Decision, SessionRecord, Settled, Settlement,
};

use crate::audit::verified;
use crate::harness::{
    Harness, NOW, approve, approved, claim, confirmed, envelope, question, retrieval, session, settlement,
    with_session,
};

const MANY: usize = 64;

/// Runs the same thing many times at once, and collects what came of it.
async fn at_once<S, T, F>(store: &Arc<S>, act: impl Fn(Arc<S>, usize) -> F) -> Vec<T>
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

fn count<T: PartialEq>(answers: &[T], wanted: &T) -> usize {
    answers.iter().filter(|answer| *answer == wanted).count()
}

pub async fn one_of_many_claims_is_new<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for round in 0..20 {
        let call = claim("s", &format!("call {round}"));
        let answers = at_once(&store, |store, _| {
            let call = call.clone();
            async move { store.claim(call).await.unwrap() }
        });
        let answers = answers.await;
        assert_eq!(count(&answers, &Claimed::New), 1);
        assert_eq!(count(&answers, &Claimed::Running), MANY - 1);
    }
}

pub async fn a_budget_is_never_overspent<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for turn in 1..=10 {
        store.begin_turn("s", NOW).await.unwrap();
        let answers = at_once(&store, |store, number| async move {
            let call = retrieval("s", &format!("call {turn} {number}"), turn, 5);
            store.claim(call).await.unwrap()
        });
        let answers = answers.await;
        assert_eq!(count(&answers, &Claimed::New), 5);
        assert_eq!(count(&answers, &Claimed::OverBudget { used: 5 }), MANY - 5);
        assert_eq!(store.session("s").await.unwrap().unwrap().retrievals, 5);
    }
}

pub async fn one_approval_lets_one_call_run<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for round in 0..10 {
        let (id, execution) = (format!("q{round}"), format!("call {round}"));
        let asked = approved(&*store, question(&id, "s", &execution)).await;
        let answers = at_once(&store, |store, number| {
            let mut call = confirmed(&asked);
            if number % 4 == 3 {
                call.execution = format!("{execution} again").into();
            }
            async move { store.claim(call).await.unwrap() }
        });
        let answers = answers.await;
        assert_eq!(count(&answers, &Claimed::New), 1);
        assert_eq!(count(&answers, &Claimed::Unapproved), MANY / 4);
        assert_eq!(count(&answers, &Claimed::Running), MANY - MANY / 4 - 1);
        assert_eq!(store.confirmation(&id).await.unwrap().unwrap().answer, Answer::Used);
    }
}

pub async fn one_of_many_deciders_wins<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for round in 0..10 {
        let id = format!("q{round}");
        store.ask(question(&id, "s", &id)).await.unwrap();
        let answers = at_once(&store, |store, number| {
            let (id, by) = (id.clone(), format!("person {number}"));
            let decision = if number % 2 == 0 { approve(&by) } else { Decision::Reject { by, reason: None } };
            async move { store.decide(&id, decision, NOW).await.unwrap() }
        });
        let winners: Vec<_> = answers.await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(store.confirmation(&id).await.unwrap().unwrap(), winners[0]);
    }
}

pub async fn one_of_many_updates_wins<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for revision in 0..10 {
        let answers = at_once(&store, |store, number| async move {
            let changed = SessionRecord { revision, state: json!(number), ..session("s") };
            store.update_session(&changed).await.unwrap().then_some(number)
        });
        let winners: Vec<_> = answers.await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let after = store.session("s").await.unwrap().unwrap();
        assert_eq!((after.revision, &after.state), (revision + 1, &json!(winners[0])));
    }
}

pub async fn one_of_many_sessions_gets_the_id<H: Harness>() {
    let harness = H::fresh().await;
    let store = harness.store();
    let answers = at_once(&store, |store, number| async move {
        let record = SessionRecord { client_id: format!("client {number}"), ..session("s") };
        store.create_session(record.clone()).await.ok().map(|()| record)
    });
    let winners: Vec<_> = answers.await.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(*store.session("s").await.unwrap().unwrap(), winners[0]);
}

pub async fn one_question_is_asked<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let answers = at_once(&store, |store, number| async move {
        let token_hash = [u8::try_from(number).unwrap(); 32];
        let asked = Confirmation { token_hash, ..question(&format!("q{number}"), "s", "call") };
        store.ask(asked).await.unwrap().id.clone()
    });
    let ids = answers.await;
    assert_eq!(count(&ids, &ids[0]), MANY, "{ids:?}");
    assert_eq!(store.pending(None).await.unwrap().len(), 1);
}

pub async fn one_of_many_settlements_stands<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let call = claim("s", "call");
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    let answers = at_once(&store, |store, number| {
        let settlement =
            Settlement { envelope: envelope("call", json!(number)), ..settlement(&claim("s", "call")) };
        async move { store.settle(settlement).await }
    });
    let answers = answers.await;
    let Claimed::Finished(first) = store.claim(call.clone()).await.unwrap() else {
        panic!("it was settled");
    };
    assert_eq!(count(&answers, &Ok(Settled::First)), 1);
    assert_eq!(count(&answers, &Ok(Settled::Earlier(first.clone()))), MANY - 1);
    assert_eq!(store.claim(call).await, Ok(Claimed::Finished(first)));
    assert_eq!(verified(&*store).await.len(), 1);
}

pub async fn many_sessions_do_not_mix<H: Harness>() {
    let harness = H::fresh().await;
    let store = harness.store();
    let answers = at_once(&store, |store, number| async move {
        let id = format!("s{number}");
        store.create_session(session(&id)).await.unwrap();
        for call in 0..20 {
            let call = claim(&id, &format!("call {call}"));
            assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
            let settlement =
                Settlement { envelope: envelope(&call.execution, json!({"of": id})), ..settlement(&call) };
            store.settle(settlement.clone()).await.unwrap();
            assert_eq!(store.claim(call).await, Ok(Claimed::Finished(settlement.envelope)));
        }
    });
    answers.await;
    assert_eq!(verified(&*store).await.len(), MANY * 20);
}

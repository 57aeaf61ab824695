//! Rules about rate limits: a store counts the calls of a key in a sliding window, all or none of a claim's limits.

use std::sync::Arc;

use tokio::sync::Barrier;
use tokio::task::JoinSet;
use toolwright_orchestrator::store::{Backend, Claim, ClaimOutcome, RateCharge, RateExceeded};

use crate::support::{
    NOW, StoreFixture, approved, claim, confirmation, confirmed, idempotent, over_budget, retrieval, run,
    with_session,
};

fn limit(key: &str, calls: u64) -> RateCharge {
    RateCharge::new(key.to_owned(), calls, 100)
}

/// A claim at this time that counts for these limits.
fn limited(execution: &str, at: i64, rates: &[RateCharge]) -> Claim {
    Claim { now: NOW + at, rates: rates.to_vec(), ..claim("s", execution) }
}

const fn exceeded(place: usize, wait_ms: i64) -> ClaimOutcome {
    ClaimOutcome::RateLimited(RateExceeded { place, wait_ms })
}

pub async fn any_window_holds_at_most_the_limit<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let two = [limit("größe\n\"ada\"", 2)];
    for (execution, at, outcome) in [
        ("a", 0, ClaimOutcome::New),
        ("b", 60, ClaimOutcome::New),
        ("c", 99, exceeded(0, 1)),
        ("c", 100, ClaimOutcome::New),
        ("d", 101, exceeded(0, 59)),
        ("d", 160, ClaimOutcome::New),
        ("e", 160, exceeded(0, 40)),
    ] {
        assert_eq!(store.claim(limited(execution, at, &two)).await, Ok(outcome), "{execution} at {at}");
    }
    assert_eq!(store.execution("s", "e").await, Ok(None), "a claim that is refused leaves nothing behind");
    assert_eq!(store.claim(limited("other", 160, &[limit("other", 2)])).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(limited("none", 160, &[limit("none", 0)])).await, Ok(exceeded(0, 100)));
}

pub async fn a_call_counts_for_all_of_its_rate_limits_or_for_none<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let (own, org) = (limit("own", 1), limit("org", 1));
    assert_eq!(store.claim(limited("a", 0, std::slice::from_ref(&org))).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(limited("b", 1, &[own.clone(), org.clone()])).await, Ok(exceeded(1, 99)));
    assert_eq!(store.claim(limited("b", 2, &[own])).await, Ok(ClaimOutcome::New));
}

pub async fn rate_limits_are_spent_by_new_claims_only<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let rates = vec![limit("k", 2)];
    let beyond = Claim { rates: rates.clone(), ..retrieval("s", "over budget", 0) };
    assert_eq!(store.claim(beyond).await, Ok(over_budget(0)));
    let pending = store.create_confirmation(confirmation("q", "s", "unapproved")).await.unwrap();
    let unapproved = Claim { rates: rates.clone(), ..confirmed(&pending) };
    assert_eq!(store.claim(unapproved).await, Ok(ClaimOutcome::Unapproved));
    let again = Claim { rates: rates.clone(), ..idempotent("s", "again") };
    for _ in 0..3 {
        // It counts when it is first claimed.
        assert_eq!(store.claim(again.clone()).await, Ok(ClaimOutcome::New));
        assert_eq!(store.claim(again.clone()).await, Ok(ClaimOutcome::Running));
        store.release("s", "again").await.unwrap();
    }
    let second = Claim { rates: rates.clone(), ..claim("s", "second") };
    let recorded = run(&*store, second.clone()).await;
    assert_eq!(store.claim(second.clone()).await, Ok(ClaimOutcome::Finished(recorded)));
    assert_eq!(store.claim(Claim { digest: [8; 32], ..second }).await, Ok(ClaimOutcome::Conflict));
    assert_eq!(store.claim(Claim { rates, ..claim("s", "third") }).await, Ok(exceeded(0, 100)));
}

pub async fn a_rate_limited_claim_uses_up_no_approval<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    let call = Claim { rates: vec![limit("k", 0)], ..confirmed(&approval) };
    assert_eq!(store.claim(call).await, Ok(exceeded(0, 100)));
    assert_eq!(store.claim(confirmed(&approval)).await, Ok(ClaimOutcome::New));
}

pub async fn calls_without_a_claim_count_for_rate_limits<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let rates = [limit("k", 2)];
    assert_eq!(store.spend_rates(&rates, NOW).await, Ok(None));
    assert_eq!(store.claim(limited("a", 1, &rates)).await, Ok(ClaimOutcome::New));
    let exceeded = RateExceeded { place: 0, wait_ms: 98 };
    assert_eq!(store.spend_rates(&rates, NOW + 2).await, Ok(Some(exceeded)));
    assert_eq!(store.spend_rates(&rates, NOW + 100).await, Ok(None));
}

pub async fn a_sweep_keeps_the_calls_of_current_windows<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let hour = [RateCharge::new("k".to_owned(), 2, 3_600_000)];
    for at in [0, 120_000] {
        assert_eq!(store.spend_rates(&hour, NOW + at).await, Ok(None));
    }
    store.sweep(NOW + 121_000).await.unwrap();
    let wait_ms = 3_600_000 - 121_000;
    assert_eq!(store.spend_rates(&hour, NOW + 121_000).await, Ok(Some(RateExceeded { place: 0, wait_ms })));
    store.sweep(NOW + 3_700_000).await.unwrap();
    assert_eq!(store.spend_rates(&hour, NOW + 3_700_000).await, Ok(None));
    let wait_ms = 120_000 - 100_000;
    assert_eq!(store.spend_rates(&hour, NOW + 3_700_000).await, Ok(Some(RateExceeded { place: 0, wait_ms })));
}

pub async fn concurrent_claims_never_exceed_a_rate_limit<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    assert_eq!(claim_at_once(&[store], 64, 10).await, 10);
}

/// Makes as many claims at once, spread over these stores, under one limit. Returns how many were allowed.
pub async fn claim_at_once<S: Backend + 'static>(stores: &[Arc<S>], claims: usize, calls: u64) -> usize {
    let start = Arc::new(Barrier::new(claims));
    let mut tasks = JoinSet::new();
    for number in 0..claims {
        let (store, start) = (Arc::clone(&stores[number % stores.len()]), Arc::clone(&start));
        let rates = [RateCharge::new("shared".to_owned(), calls, 60_000)];
        let call = limited(&format!("call {number}"), 0, &rates);
        tasks.spawn(async move {
            start.wait().await;
            match store.claim(call).await.unwrap() {
                ClaimOutcome::New => 1,
                ClaimOutcome::RateLimited(RateExceeded { place: 0, wait_ms: 60_000 }) => 0,
                other => panic!("{other:?}"),
            }
        });
    }
    tasks.join_all().await.into_iter().sum()
}

//! Rules about meters: a store adds up the charges of any meter, of a turn or of a session, without knowing it by name.

use toolwright_orchestrator::store::{
    Backend, Charge, Claim, ClaimOutcome, MeterScope, RETRIEVAL_METER, SessionRecord,
};

use crate::support::{
    Restart, StoreFixture, approved, claim, confirmation, confirmed, idempotent, over_budget, retrieval,
    retrievals, run, settlement, with_session,
};

/// A meter that only these tests know: cents of a session.
fn cents(amount: u32, limit: u32) -> Charge {
    Charge { meter: "cents", scope: MeterScope::Session, amount, limit }
}

/// A retrieval call that also costs money.
fn paid_retrieval(execution: &str, amount: u32) -> Claim {
    let mut claim = retrieval("s", execution, 2);
    claim.charges.push(cents(amount, 100));
    claim
}

async fn cents_spent(store: &impl Backend) -> u32 {
    store.session("s").await.unwrap().unwrap().spent.get(MeterScope::Session, "cents")
}

pub async fn a_session_meter_is_charged_across_turns<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for (execution, amount) in [("a", 30), ("b", 40)] {
        assert_eq!(store.claim(paid_retrieval(execution, amount)).await, Ok(ClaimOutcome::New));
    }
    assert_eq!((retrievals(&*store).await, cents_spent(&*store).await), (2, 70));
    let begun = store.begin_turn("s").await.unwrap();
    assert_eq!(begun.spent.get(MeterScope::Turn, RETRIEVAL_METER), 0);
    assert_eq!(begun.spent.get(MeterScope::Session, "cents"), 70);
    let exceeded = ClaimOutcome::OverBudget { meter: "cents".to_owned(), spent: 70 };
    assert_eq!(store.claim(paid_retrieval("c", 31)).await, Ok(exceeded));
    assert_eq!(store.claim(paid_retrieval("c", 30)).await, Ok(ClaimOutcome::New));
    assert_eq!((retrievals(&*store).await, cents_spent(&*store).await), (1, 100));
}

pub async fn all_meters_are_charged_or_none<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for execution in ["a", "b"] {
        assert_eq!(store.claim(paid_retrieval(execution, 10)).await, Ok(ClaimOutcome::New));
    }
    // The first meter that is exceeded is named, and the other is not charged.
    assert_eq!(store.claim(paid_retrieval("c", 10)).await, Ok(over_budget(2)));
    let both = Claim { charges: vec![cents(200, 100)], ..paid_retrieval("c", 0) };
    let exceeded = ClaimOutcome::OverBudget { meter: "cents".to_owned(), spent: 20 };
    assert_eq!(store.claim(both).await, Ok(exceeded));
    assert_eq!((retrievals(&*store).await, cents_spent(&*store).await), (2, 20));
    assert_eq!(store.execution("s", "c").await, Ok(None));
}

pub async fn meters_of_two_scopes_may_have_one_name<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let charge = |scope| Charge { meter: "calls", scope, amount: 1, limit: 5 };
    let charges = vec![charge(MeterScope::Turn), charge(MeterScope::Session)];
    for execution in ["a", "b"] {
        store.begin_turn("s").await.unwrap();
        let call = Claim { charges: charges.clone(), ..claim("s", execution) };
        assert_eq!(store.claim(call).await, Ok(ClaimOutcome::New));
    }
    let spent = store.session("s").await.unwrap().unwrap().spent.clone();
    assert_eq!((spent.get(MeterScope::Turn, "calls"), spent.get(MeterScope::Session, "calls")), (1, 2));
}

pub async fn the_meters_are_charged_by_new_claims_only<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = retrieval("s", "a", 2);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(retrievals(&*store).await, 1);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::Running));
    let other = Claim { digest: [8; 32], ..call.clone() };
    assert_eq!(store.claim(other).await, Ok(ClaimOutcome::Conflict));
    store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
    let unapproved = Claim { confirmation: Some("none".to_owned()), ..retrieval("s", "b", 2) };
    assert_eq!(store.claim(unapproved).await, Ok(ClaimOutcome::Unapproved));
    assert_eq!(retrievals(&*store).await, 1);
}

pub async fn a_claim_beyond_the_limit_leaves_nothing_behind<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for call in ["a", "b"] {
        assert_eq!(store.claim(retrieval("s", call, 2)).await, Ok(ClaimOutcome::New));
    }
    assert_eq!(store.claim(retrieval("s", "c", 2)).await, Ok(over_budget(2)));
    assert_eq!(store.execution("s", "c").await, Ok(None));
    assert_eq!(retrievals(&*store).await, 2);
    // A running execution is not refused: it was charged when it was claimed.
    assert_eq!(store.claim(retrieval("s", "a", 2)).await, Ok(ClaimOutcome::Running));
    assert_eq!(store.claim(retrieval("s", "c", 3)).await, Ok(ClaimOutcome::New));
}

pub async fn claims_without_charges_cost_nothing<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.begin_turn("s").await.unwrap();
    assert_eq!(store.claim(claim("s", "free")).await, Ok(ClaimOutcome::New));
    assert_eq!(retrievals(&*store).await, 0);
    for call in ["a", "b"] {
        assert_eq!(store.claim(retrieval("s", call, 2)).await, Ok(ClaimOutcome::New));
    }
    assert_eq!(store.claim(claim("s", "free too")).await, Ok(ClaimOutcome::New));
    assert_eq!(retrievals(&*store).await, 2);
}

pub async fn a_turn_resets_its_meters<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    assert_eq!(store.begin_turn("s").await.unwrap().turn, 1);
    assert_eq!(store.claim(retrieval("s", "a", 1)).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(retrieval("s", "b", 1)).await, Ok(over_budget(1)));
    assert_eq!(retrievals(&*store).await, 1);
    let begun = store.begin_turn("s").await.unwrap();
    assert_eq!((begun.turn, retrievals(&*store).await), (2, 0));
    assert_eq!(store.session("s").await.unwrap().unwrap(), begun);
    assert_eq!(store.claim(retrieval("s", "b", 1)).await, Ok(ClaimOutcome::New));
}

pub async fn an_update_keeps_turn_and_meters<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let read = store.session("s").await.unwrap().unwrap();
    store.begin_turn("s").await.unwrap();
    assert_eq!(store.claim(paid_retrieval("a", 10)).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(claim("s", "b")).await, Ok(ClaimOutcome::New));
    let stale = SessionRecord { turn: 9, state: serde_json::json!(1), ..(*read).clone() };
    assert_eq!(store.update_session(&stale).await, Ok(true));
    let after = store.session("s").await.unwrap().unwrap();
    assert_eq!((after.turn, &after.state), (1, &serde_json::json!(1)));
    assert_eq!((retrievals(&*store).await, cents_spent(&*store).await), (1, 10));
}

pub async fn spent_meters_survive_a_restart<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    store.begin_turn("s").await.unwrap();
    assert_eq!(store.claim(retrieval("s", "a", 3)).await, Ok(ClaimOutcome::New));
    let read = store.session("s").await.unwrap().unwrap();
    assert_eq!(store.update_session(&read).await, Ok(true));
    let mut paid = retrieval("s", "b", 3);
    paid.charges.push(cents(60, 100));
    run(&*store, paid).await;
    assert_eq!(store.claim(claim("s", "free")).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(retrieval("s", "c", 3)).await, Ok(ClaimOutcome::New));
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!((retrievals(&*store).await, cents_spent(&*store).await), (3, 60));
    // It was charged before the crash.
    assert_eq!(store.claim(retrieval("s", "a", 2)).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(retrieval("s", "d", 4)).await, Ok(ClaimOutcome::New));
    assert_eq!(store.claim(retrieval("s", "e", 4)).await, Ok(over_budget(4)));
    store.begin_turn("s").await.unwrap();
    assert_eq!((retrievals(&*store).await, cents_spent(&*store).await), (0, 60));
    let dear = Claim { charges: vec![cents(41, 100)], ..idempotent("s", "f") };
    let exceeded = ClaimOutcome::OverBudget { meter: "cents".to_owned(), spent: 60 };
    assert_eq!(store.claim(dear).await, Ok(exceeded));
}

pub async fn a_refused_charge_uses_up_no_approval<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let approval = approved(&*store, confirmation("q", "s", "call")).await;
    let dear = Claim { charges: vec![cents(2, 1)], ..confirmed(&approval) };
    let exceeded = ClaimOutcome::OverBudget { meter: "cents".to_owned(), spent: 0 };
    assert_eq!(store.claim(dear).await, Ok(exceeded));
    assert_eq!(store.claim(confirmed(&approval)).await, Ok(ClaimOutcome::New));
}

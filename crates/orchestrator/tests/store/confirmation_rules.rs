//! Rules about confirmations.

use serde_json::json;
use toolwright_orchestrator::store::{
    ApproverRecord, ArgumentEdit, Backend, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus,
    Decision, Durability, PendingQuery, PendingScope,
};

use crate::support::{
    ALL, HOUR, NOW, StoreFixture, approve, approved, claim, confirmation, confirmed, over_budget, retrieval,
    retrieval_charge, session, settlement, with_session,
};

pub async fn a_confirmation_is_stored_unchanged<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = confirmation("q", "s", "call");
    assert_eq!(*store.create_confirmation(pending.clone()).await.unwrap(), pending);
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), pending);
    assert_eq!(store.confirmation("another").await, Ok(None));
}

pub async fn a_second_request_keeps_the_confirmation_and_renews_its_token<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let first = confirmation("q1", "s", "call");
    store.create_confirmation(first.clone()).await.unwrap();
    let again = ConfirmationRecord {
        token_hash: [1; 32],
        created_at: NOW + 5,
        expires_at: NOW + 2 * HOUR,
        ..confirmation("q2", "s", "call")
    };
    let renewed = ConfirmationRecord { token_hash: [1; 32], ..first };
    assert_eq!(*store.create_confirmation(again).await.unwrap(), renewed);
    assert_eq!(*store.confirmation("q1").await.unwrap().unwrap(), renewed);
    assert_eq!(store.confirmation("q2").await, Ok(None));
    assert_eq!(store.pending_confirmations(ALL).await.unwrap().len(), 1);
    // Another execution of the session, and the same id in another session, have their own confirmation.
    store.create_session(session("t"), Durability::Committed).await.unwrap();
    assert_eq!(store.create_confirmation(confirmation("q3", "s", "another")).await.unwrap().id, "q3");
    assert_eq!(store.create_confirmation(confirmation("q4", "t", "call")).await.unwrap().id, "q4");
}

pub async fn a_decided_or_expired_confirmation_is_not_renewed<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_confirmation(confirmation("q1", "s", "call")).await.unwrap();
    let rejection = Decision::Reject { by: "ada".into(), reason: None };
    store.decide_confirmation("q1", rejection, NOW).await.unwrap().unwrap();
    assert_eq!(store.create_confirmation(confirmation("q2", "s", "call")).await.unwrap().id, "q2");
    let late = NOW + HOUR;
    let after =
        ConfirmationRecord { created_at: late, expires_at: late + HOUR, ..confirmation("q3", "s", "call") };
    assert_eq!(store.create_confirmation(after).await.unwrap().id, "q3", "q2 expired when q3 was created");
    assert_eq!(store.confirmation("q1").await.unwrap().unwrap().status, ConfirmationStatus::Rejected);
    assert!(store.decide_confirmation("q3", approve("ada"), late).await.unwrap().is_some());
}

pub async fn closed_confirmations_are_found_by_id<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for id in ["open", "approved", "rejected"] {
        store.create_confirmation(confirmation(id, "s", id)).await.unwrap();
    }
    store.decide_confirmation("approved", approve("ada"), NOW).await.unwrap().unwrap();
    let rejection = Decision::Reject { by: "ada".into(), reason: None };
    store.decide_confirmation("rejected", rejection, NOW).await.unwrap().unwrap();
    let ids = ["open", "approved", "un\0known", "rejected"].map(str::to_owned);
    assert_eq!(store.closed_confirmations(&ids, NOW).await.unwrap(), ids[1..]);
    assert_eq!(store.closed_confirmations(&ids, NOW + HOUR).await.unwrap(), ids);
    assert_eq!(store.closed_confirmations(&[], NOW).await, Ok(vec![]));
}

pub async fn pending_confirmations_are_listed_by_session_oldest_first<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_session(session("t"), Durability::Committed).await.unwrap();
    for (id, of, age) in [("young", "s", 1), ("old", "t", 3), ("middle", "s", 2), ("decided", "s", 4)] {
        let pending = ConfirmationRecord { created_at: NOW - age, ..confirmation(id, of, id) };
        store.create_confirmation(pending).await.unwrap();
    }
    store.decide_confirmation("decided", approve("ada"), NOW).await.unwrap().unwrap();
    let ids = async |scope: PendingScope<'_>| {
        let pending = store.pending_confirmations(PendingQuery::all(scope)).await.unwrap();
        pending.iter().map(|confirmation| confirmation.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(PendingScope::All).await, ["old", "middle", "young"]);
    assert_eq!(ids(PendingScope::Session("s")).await, ["middle", "young"]);
    assert_eq!(ids(PendingScope::Session("t")).await, ["old"]);
    assert!(ids(PendingScope::Session("unknown")).await.is_empty());
}

pub async fn pending_confirmations_are_listed_in_pages<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for number in 0..7 {
        // Some have the same time, some another principal.
        let principal = if number % 3 == 2 { "jon" } else { "mira" };
        let pending = ConfirmationRecord {
            created_at: NOW + number / 2,
            expires_at: NOW + 100 + number,
            principal: principal.to_owned(),
            ..confirmation(&format!("q{number}"), "s", &format!("call {number}"))
        };
        store.create_confirmation(pending).await.unwrap();
    }
    let read = async |scope: PendingScope<'_>, limit: usize| {
        let mut pages = Vec::new();
        let mut after: Option<(i64, String)> = None;
        loop {
            let place = after.as_ref().map(|(at, id)| (*at, id.as_str()));
            let query = PendingQuery { scope, after: place, limit };
            let page = store.pending_confirmations(query).await.unwrap();
            let Some(last) = page.last() else { return pages };
            after = Some((last.created_at, last.id.clone()));
            pages.push(page.iter().map(|pending| pending.id.clone()).collect::<Vec<_>>().join(" "));
        }
    };
    assert_eq!(read(PendingScope::All, 3).await, ["q0 q1 q2", "q3 q4 q5", "q6"]);
    assert_eq!(read(PendingScope::Session("s"), 5).await, ["q0 q1 q2 q3 q4", "q5 q6"]);
    assert_eq!(read(PendingScope::Principal("mira"), 2).await, ["q0 q1", "q3 q4", "q6"]);
    assert_eq!(read(PendingScope::Principal("jon"), 9).await, ["q2 q5"]);
    let count = async |principal: &str, now: i64, limit: usize| {
        store.count_pending(principal, now, limit).await.unwrap()
    };
    assert_eq!(
        [count("mira", NOW, 99).await, count("mira", NOW, 2).await, count("eve", NOW, 9).await],
        [5, 2, 0]
    );
    assert_eq!(count("mira", NOW + 101, 99).await, 3, "those that have expired do not count");
    store.decide_confirmation("q0", approve("ada"), NOW).await.unwrap().unwrap();
    store.sweep(NOW + 101).await.unwrap();
    assert_eq!(read(PendingScope::All, 9).await, ["q2 q3 q4 q5 q6"]);
    assert_eq!(count("mira", NOW, 99).await, 3);
}

pub async fn an_approval_records_the_approver_and_the_arguments<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = confirmation("q", "s", "call");
    store.create_confirmation(pending.clone()).await.unwrap();
    let edited = json!({"to": "grace@example.org"});
    let approver =
        ApproverRecord { id: "ada".to_owned(), org: Some("studio".to_owned()), via: "token".to_owned() };
    let edits = vec![ArgumentEdit { path: "/to".to_owned(), from: Some(json!(1)), to: None }];
    let decision = Decision::Approve {
        by: approver.clone(),
        args: edited.clone(),
        redacted_args: None,
        edits: edits.clone(),
        roles: None,
    };
    let decided = store.decide_confirmation("q", decision, NOW).await.unwrap().unwrap();
    let expected = ConfirmationRecord {
        status: ConfirmationStatus::Approved,
        args: edited,
        is_edited: true,
        decided_by: Some("ada".to_owned()),
        approver: Some(approver),
        edits,
        ..pending.clone()
    };
    assert_eq!(*decided, expected);
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), expected);
    // The claim has the digest of the original arguments, not of the edited ones.
    assert_eq!(store.claim(confirmed(&pending)).await, Ok(ClaimOutcome::New));
}

pub async fn a_rejection_records_the_approver_and_the_reason<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = confirmation("q", "s", "call");
    store.create_confirmation(pending.clone()).await.unwrap();
    let decision = Decision::Reject { by: "ada".into(), reason: Some("not now".to_owned()) };
    let decided = store.decide_confirmation("q", decision, NOW).await.unwrap().unwrap();
    let expected = ConfirmationRecord {
        status: ConfirmationStatus::Rejected,
        decided_by: Some("ada".to_owned()),
        approver: Some("ada".into()),
        reason: Some("not now".to_owned()),
        ..pending.clone()
    };
    assert_eq!(*decided, expected);
    assert!(store.pending_confirmations(ALL).await.unwrap().is_empty());
    assert!(store.approved_confirmations().await.unwrap().is_empty());
    assert_eq!(store.claim(confirmed(&pending)).await, Ok(ClaimOutcome::Unapproved));
}

pub async fn a_confirmation_is_decided_once<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let decided = approved(&*store, confirmation("q", "s", "call")).await;
    let rejection = Decision::Reject { by: "mallory".into(), reason: None };
    assert_eq!(store.decide_confirmation("q", rejection, NOW).await, Ok(None));
    assert_eq!(store.decide_confirmation("q", approve("mallory"), NOW).await, Ok(None));
    assert_eq!(store.decide_confirmation("another", approve("ada"), NOW).await, Ok(None));
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), decided);
}

pub async fn an_expired_confirmation_cannot_be_decided<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for id in ["q", "r"] {
        store.create_confirmation(confirmation(id, "s", id)).await.unwrap();
    }
    assert_eq!(store.decide_confirmation("q", approve("ada"), NOW + HOUR).await, Ok(None));
    assert!(store.decide_confirmation("r", approve("ada"), NOW + HOUR - 1).await.unwrap().is_some());
    store.sweep(NOW + HOUR).await.unwrap();
    assert_eq!(store.decide_confirmation("q", approve("ada"), NOW).await, Ok(None), "it was swept");
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().status, ConfirmationStatus::Expired);
    assert_eq!(store.claim(confirmed(&confirmation("q", "s", "q"))).await, Ok(ClaimOutcome::Unapproved));
}

pub async fn a_claim_needs_an_approval<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = confirmation("q", "s", "call");
    assert_eq!(
        store.claim(confirmed(&pending)).await,
        Ok(ClaimOutcome::Unapproved),
        "there is no confirmation"
    );
    store.create_confirmation(pending.clone()).await.unwrap();
    assert_eq!(store.claim(confirmed(&pending)).await, Ok(ClaimOutcome::Unapproved), "it is pending");
    assert_eq!(store.execution("s", "call").await, Ok(None));
    store.decide_confirmation("q", approve("ada"), NOW).await.unwrap().unwrap();
    assert_eq!(store.claim(confirmed(&pending)).await, Ok(ClaimOutcome::New));
}

pub async fn an_approval_is_valid_for_one_execution_only<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_session(session("t"), Durability::Committed).await.unwrap();
    let pending = approved(&*store, confirmation("q", "s", "call")).await;
    let matching = confirmed(&pending);
    let others = [
        ("session", Claim { session: "t".to_owned(), ..matching.clone() }),
        ("execution", Claim { execution: "another".into(), ..matching.clone() }),
        ("tool", Claim { tool: "mail_delete".into(), ..matching.clone() }),
        ("version", Claim { tool_version: "1.2.1".into(), ..matching.clone() }),
        ("digest", Claim { digest: [8; 32], ..matching.clone() }),
    ];
    for (bound, other) in others {
        assert_eq!(store.claim(other.clone()).await, Ok(ClaimOutcome::Unapproved), "{bound}");
        assert_eq!(store.execution(&other.session, &other.execution).await, Ok(None), "{bound}");
    }
    assert_eq!(store.claim(matching).await, Ok(ClaimOutcome::New));
}

pub async fn an_approval_is_used_once<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = approved(&*store, confirmation("q", "s", "call")).await;
    let call = confirmed(&pending);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let used = ConfirmationRecord { status: ConfirmationStatus::Used, ..pending };
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), used);
    assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::Running));
    let again = Claim { execution: "again".into(), ..call.clone() };
    assert_eq!(store.claim(again).await, Ok(ClaimOutcome::Unapproved));
    store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(store.claim(call).await, Ok(ClaimOutcome::Finished(_))));
    assert_eq!(store.decide_confirmation("q", approve("ada"), NOW).await, Ok(None));
}

pub async fn a_refused_claim_uses_up_no_approval<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = approved(&*store, confirmation("q", "s", "call")).await;
    let matching = confirmed(&pending);
    assert_eq!(store.claim(retrieval("s", "paid", 1)).await, Ok(ClaimOutcome::New));
    let costly = Claim { charges: retrieval_charge(1), ..matching.clone() };
    assert_eq!(store.claim(costly).await, Ok(over_budget(1)));
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), pending);
    assert_eq!(store.claim(matching).await, Ok(ClaimOutcome::New));
}

pub async fn approved_confirmations_are_listed_until_their_execution_is_claimed<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    assert!(store.approved_confirmations().await.unwrap().is_empty());
    let first = approved(&*store, confirmation("q1", "s", "first")).await;
    approved(&*store, confirmation("q2", "s", "second")).await;
    store.create_confirmation(confirmation("q3", "s", "third")).await.unwrap();
    let ids = async || {
        let approved = store.approved_confirmations().await.unwrap();
        let mut ids: Vec<_> = approved.iter().map(|confirmation| confirmation.id.clone()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids().await, ["q1", "q2"]);
    assert_eq!(store.claim(confirmed(&first)).await, Ok(ClaimOutcome::New));
    assert_eq!(ids().await, ["q2"]);
    // A claim without a confirmation uses up no approval.
    assert_eq!(store.claim(claim("s", "third")).await, Ok(ClaimOutcome::New));
    assert_eq!(ids().await, ["q2"]);
}

pub async fn a_closed_confirmation_stores_no_secrets<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let full = json!({"to": "ada@example.org", "pin": "1234"});
    let redacted = Some(json!({"to": "ada@example.org", "pin": "[redacted]"}));
    let create = async |id: &str| {
        let pending = ConfirmationRecord {
            args: full.clone(),
            redacted_args: redacted.clone(),
            ..confirmation(id, "s", id)
        };
        assert_eq!(*store.create_confirmation(pending.clone()).await.unwrap(), pending);
        assert_eq!(*store.confirmation(id).await.unwrap().unwrap(), pending);
        pending
    };
    for id in ["used", "rejected", "expired"] {
        create(id).await;
    }
    let edited = json!({"to": "bob@example.org", "pin": "1234"});
    let edited_redacted = Some(json!({"to": "bob@example.org", "pin": "[redacted]"}));
    let by: ApproverRecord = "ada".into();
    let approval = Decision::Approve {
        by: by.clone(),
        args: edited.clone(),
        redacted_args: edited_redacted.clone(),
        edits: Vec::new(),
        roles: None,
    };
    let approved = store.decide_confirmation("used", approval, NOW).await.unwrap().unwrap();
    assert_eq!((&approved.args, approved.is_edited), (&edited, true));
    assert_eq!(store.approved_confirmations().await.unwrap()[0].args, edited);
    assert_eq!(store.claim(confirmed(&approved)).await, Ok(ClaimOutcome::New));
    store.settle(settlement(&confirmed(&approved))).await.unwrap();
    store.decide_confirmation("rejected", Decision::Reject { by, reason: None }, NOW).await.unwrap();
    let swept = store.sweep(NOW + HOUR).await.unwrap();
    assert_eq!(
        swept.confirmations.iter().map(|confirmation| confirmation.id.as_str()).collect::<Vec<_>>(),
        ["expired"]
    );
    for (id, expected) in [("used", &edited_redacted), ("rejected", &redacted), ("expired", &redacted)] {
        let closed = store.confirmation(id).await.unwrap().unwrap();
        assert_eq!((Some(&closed.args), &closed.redacted_args), (expected.as_ref(), &None), "{id}");
    }
}

pub async fn an_approval_can_be_withdrawn_until_it_is_used<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let pending = confirmation("c", "s", "e");
    store.create_confirmation(pending.clone()).await.unwrap();
    assert_eq!(store.withdraw_approval("c").await, Ok(false));
    let roles = Some(vec!["lead".to_owned()]);
    let yes = Decision::Approve {
        by: "ada".into(),
        args: pending.args.clone(),
        redacted_args: None,
        edits: Vec::new(),
        roles,
    };
    let approved = store.decide_confirmation("c", yes, NOW).await.unwrap().unwrap();
    assert_eq!(approved.roles, Some(vec!["lead".to_owned()]));
    assert_eq!(store.withdraw_approval("c").await, Ok(true));
    assert_eq!(store.confirmation("c").await.unwrap().unwrap().status, ConfirmationStatus::Expired);
    assert_eq!(store.approved_confirmations().await, Ok(Vec::new()));
    assert_eq!(store.claim(confirmed(&pending)).await, Ok(ClaimOutcome::Unapproved));
    // The same execution may be asked about again.
    store.create_confirmation(confirmation("d", "s", "e")).await.unwrap();
    store.decide_confirmation("d", approve("ada"), NOW).await.unwrap().unwrap();
    assert_eq!(store.claim(confirmed(&confirmation("d", "s", "e"))).await, Ok(ClaimOutcome::New));
    assert_eq!(store.withdraw_approval("d").await, Ok(false));
}

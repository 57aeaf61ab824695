//! Rules about questions to a person.

use serde_json::json;
use toolwright_orchestrator::store::{Answer, Backend, Claim, Claimed, Confirmation, Decision};

use crate::harness::{
    HOUR, Harness, NOW, approve, approved, claim, confirmed, question, retrieval, session, settlement,
    with_session,
};

pub async fn a_question_is_kept_as_it_was_asked<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let asked = question("q", "s", "call");
    assert_eq!(*store.ask(asked.clone()).await.unwrap(), asked);
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), asked);
    assert_eq!(store.confirmation("another").await, Ok(None));
}

pub async fn asking_again_keeps_the_question_and_renews_the_token<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let first = question("q1", "s", "call");
    store.ask(first.clone()).await.unwrap();
    let again = Confirmation {
        token_hash: [1; 32],
        created_at: NOW + 5,
        expires_at: NOW + 2 * HOUR,
        ..question("q2", "s", "call")
    };
    let stands = Confirmation { token_hash: [1; 32], ..first };
    assert_eq!(*store.ask(again).await.unwrap(), stands);
    assert_eq!(*store.confirmation("q1").await.unwrap().unwrap(), stands);
    assert_eq!(store.confirmation("q2").await, Ok(None));
    assert_eq!(store.pending(None).await.unwrap().len(), 1);
    // Another call of the same session, and the same id in another session, are other questions.
    store.create_session(session("t")).await.unwrap();
    assert_eq!(store.ask(question("q3", "s", "another")).await.unwrap().id, "q3");
    assert_eq!(store.ask(question("q4", "t", "call")).await.unwrap().id, "q4");
}

pub async fn an_answered_or_expired_question_is_not_renewed<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    store.ask(question("q1", "s", "call")).await.unwrap();
    let no = Decision::Reject { by: "ada".to_owned(), reason: None };
    store.decide("q1", no, NOW).await.unwrap().unwrap();
    assert_eq!(store.ask(question("q2", "s", "call")).await.unwrap().id, "q2");
    let late = NOW + HOUR;
    let after = Confirmation { created_at: late, expires_at: late + HOUR, ..question("q3", "s", "call") };
    assert_eq!(store.ask(after).await.unwrap().id, "q3", "q2 expired the moment that q3 was asked");
    assert_eq!(store.confirmation("q1").await.unwrap().unwrap().answer, Answer::Rejected);
    assert!(store.decide("q3", approve("ada"), late).await.unwrap().is_some());
}

pub async fn questions_wait_oldest_first_and_by_session<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    store.create_session(session("t")).await.unwrap();
    for (id, of, age) in [("young", "s", 1), ("old", "t", 3), ("middle", "s", 2), ("gone", "s", 4)] {
        let asked = Confirmation { created_at: NOW - age, ..question(id, of, id) };
        store.ask(asked).await.unwrap();
    }
    store.decide("gone", approve("ada"), NOW).await.unwrap().unwrap();
    let ids = async |session: Option<&str>| {
        let waiting = store.pending(session).await.unwrap();
        waiting.iter().map(|asked| asked.id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(None).await, ["old", "middle", "young"]);
    assert_eq!(ids(Some("s")).await, ["middle", "young"]);
    assert_eq!(ids(Some("t")).await, ["old"]);
    assert!(ids(Some("nobody")).await.is_empty());
}

pub async fn an_approval_carries_its_author_and_the_arguments<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let asked = question("q", "s", "call");
    store.ask(asked.clone()).await.unwrap();
    let edited = json!({"to": "grace@example.org"});
    let decision = Decision::Approve { by: "ada".to_owned(), args: edited.clone(), shown: None };
    let decided = store.decide("q", decision, NOW).await.unwrap().unwrap();
    let expected = Confirmation {
        answer: Answer::Approved,
        args: edited,
        is_edited: true,
        decided_by: Some("ada".to_owned()),
        ..asked.clone()
    };
    assert_eq!(*decided, expected);
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), expected);
    // The claim carries the digest of what was asked, not of what the approver made of it.
    assert_eq!(store.claim(confirmed(&asked)).await, Ok(Claimed::New));
}

pub async fn a_rejection_carries_its_author_and_the_reason<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let asked = question("q", "s", "call");
    store.ask(asked.clone()).await.unwrap();
    let decision = Decision::Reject { by: "ada".to_owned(), reason: Some("not now".to_owned()) };
    let decided = store.decide("q", decision, NOW).await.unwrap().unwrap();
    let expected = Confirmation {
        answer: Answer::Rejected,
        decided_by: Some("ada".to_owned()),
        reason: Some("not now".to_owned()),
        ..asked.clone()
    };
    assert_eq!(*decided, expected);
    assert!(store.pending(None).await.unwrap().is_empty());
    assert!(store.approved().await.unwrap().is_empty());
    assert_eq!(store.claim(confirmed(&asked)).await, Ok(Claimed::Unapproved));
}

pub async fn a_question_is_decided_once<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let decided = approved(&*store, question("q", "s", "call")).await;
    let no = Decision::Reject { by: "mallory".to_owned(), reason: None };
    assert_eq!(store.decide("q", no, NOW).await, Ok(None));
    assert_eq!(store.decide("q", approve("mallory"), NOW).await, Ok(None));
    assert_eq!(store.decide("another", approve("ada"), NOW).await, Ok(None));
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), decided);
}

pub async fn an_expired_question_cannot_be_decided<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    for id in ["q", "r"] {
        store.ask(question(id, "s", id)).await.unwrap();
    }
    assert_eq!(store.decide("q", approve("ada"), NOW + HOUR).await, Ok(None));
    assert!(store.decide("r", approve("ada"), NOW + HOUR - 1).await.unwrap().is_some());
    store.sweep(NOW + HOUR).await.unwrap();
    assert_eq!(store.decide("q", approve("ada"), NOW).await, Ok(None), "it was swept");
    assert_eq!(store.confirmation("q").await.unwrap().unwrap().answer, Answer::Expired);
    assert_eq!(store.claim(confirmed(&question("q", "s", "q"))).await, Ok(Claimed::Unapproved));
}

pub async fn a_claim_needs_an_approval<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let asked = question("q", "s", "call");
    assert_eq!(store.claim(confirmed(&asked)).await, Ok(Claimed::Unapproved), "nobody asked");
    store.ask(asked.clone()).await.unwrap();
    assert_eq!(store.claim(confirmed(&asked)).await, Ok(Claimed::Unapproved), "nobody answered");
    assert_eq!(store.recorded("s", "call").await, Ok(None));
    store.decide("q", approve("ada"), NOW).await.unwrap().unwrap();
    assert_eq!(store.claim(confirmed(&asked)).await, Ok(Claimed::New));
}

pub async fn an_approval_fits_one_call_alone<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    store.create_session(session("t")).await.unwrap();
    let asked = approved(&*store, question("q", "s", "call")).await;
    let fitting = confirmed(&asked);
    let others = [
        ("session", Claim { session: "t".to_owned(), ..fitting.clone() }),
        ("execution", Claim { execution: "another".into(), ..fitting.clone() }),
        ("tool", Claim { tool: "mail_delete".into(), ..fitting.clone() }),
        ("version", Claim { tool_version: "1.2.1".into(), ..fitting.clone() }),
        ("digest", Claim { digest: [8; 32], ..fitting.clone() }),
    ];
    for (bound, other) in others {
        assert_eq!(store.claim(other.clone()).await, Ok(Claimed::Unapproved), "{bound}");
        assert_eq!(store.recorded(&other.session, &other.execution).await, Ok(None), "{bound}");
    }
    assert_eq!(store.claim(fitting).await, Ok(Claimed::New));
}

pub async fn an_approval_is_used_once<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    let call = confirmed(&asked);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::New));
    let used = Confirmation { answer: Answer::Used, ..asked };
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), used);
    assert_eq!(store.claim(call.clone()).await, Ok(Claimed::Running));
    let again = Claim { execution: "again".into(), ..call.clone() };
    assert_eq!(store.claim(again).await, Ok(Claimed::Unapproved));
    store.settle(settlement(&call)).await.unwrap();
    assert!(matches!(store.claim(call).await, Ok(Claimed::Finished(_))));
    assert_eq!(store.decide("q", approve("ada"), NOW).await, Ok(None));
}

pub async fn a_refused_claim_uses_up_no_approval<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let asked = approved(&*store, question("q", "s", "call")).await;
    let fitting = confirmed(&asked);
    assert_eq!(store.claim(retrieval("s", "paid", 0, 1)).await, Ok(Claimed::New));
    let costly = Claim { budget: Some((0, 1)), ..fitting.clone() };
    assert_eq!(store.claim(costly).await, Ok(Claimed::OverBudget { used: 1 }));
    assert_eq!(*store.confirmation("q").await.unwrap().unwrap(), asked);
    assert_eq!(store.claim(fitting).await, Ok(Claimed::New));
}

pub async fn approved_calls_are_listed_until_they_are_claimed<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    assert!(store.approved().await.unwrap().is_empty());
    let first = approved(&*store, question("q1", "s", "first")).await;
    approved(&*store, question("q2", "s", "second")).await;
    store.ask(question("q3", "s", "third")).await.unwrap();
    let ids = async || {
        let approved = store.approved().await.unwrap();
        let mut ids: Vec<_> = approved.iter().map(|asked| asked.id.clone()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids().await, ["q1", "q2"]);
    assert_eq!(store.claim(confirmed(&first)).await, Ok(Claimed::New));
    assert_eq!(ids().await, ["q2"]);
    // A call that needs no approval uses none up.
    assert_eq!(store.claim(claim("s", "third")).await, Ok(Claimed::New));
    assert_eq!(ids().await, ["q2"]);
}

pub async fn a_closed_question_keeps_no_secrets<H: Harness>() {
    let (_harness, store) = with_session::<H>().await;
    let full = json!({"to": "ada@example.org", "pin": "tell nobody"});
    let shown = Some(json!({"to": "ada@example.org", "pin": "[redacted]"}));
    let ask = async |id: &str| {
        let asked = Confirmation { args: full.clone(), shown: shown.clone(), ..question(id, "s", id) };
        assert_eq!(*store.ask(asked.clone()).await.unwrap(), asked);
        assert_eq!(*store.confirmation(id).await.unwrap().unwrap(), asked);
        asked
    };
    for id in ["used", "rejected", "expired"] {
        ask(id).await;
    }
    let edited = json!({"to": "bob@example.org", "pin": "tell nobody"});
    let edited_shown = Some(json!({"to": "bob@example.org", "pin": "[redacted]"}));
    let by = "ada".to_owned();
    let yes = Decision::Approve { by: by.clone(), args: edited.clone(), shown: edited_shown.clone() };
    let approved = store.decide("used", yes, NOW).await.unwrap().unwrap();
    assert_eq!((&approved.args, approved.is_edited), (&edited, true));
    assert_eq!(store.approved().await.unwrap()[0].args, edited);
    assert_eq!(store.claim(confirmed(&approved)).await, Ok(Claimed::New));
    store.settle(settlement(&confirmed(&approved))).await.unwrap();
    store.decide("rejected", Decision::Reject { by, reason: None }, NOW).await.unwrap();
    let swept = store.sweep(NOW + HOUR).await.unwrap();
    assert_eq!(swept.questions.iter().map(|asked| asked.id.as_str()).collect::<Vec<_>>(), ["expired"]);
    for (id, expected) in [("used", &edited_shown), ("rejected", &shown), ("expired", &shown)] {
        let closed = store.confirmation(id).await.unwrap().unwrap();
        assert_eq!((Some(&closed.args), &closed.shown), (expected.as_ref(), &None), "{id}");
    }
}

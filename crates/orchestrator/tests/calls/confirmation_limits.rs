//! How many confirmation requests wait at a time, and how they are listed.

use serde_json::{Value, json};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::CallRequest;
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{PendingQuery, PendingScope};

use crate::support::{Fixture, Setup, call, to_json};

fn fixture(per_session: usize, per_principal: usize) -> Fixture {
    let setup = Setup::new().tool("pay", json!({ "requiresConfirmation": true }));
    let limit = |policy: &mut Policy| {
        policy.max_pending_per_session = per_session;
        policy.max_pending_per_principal = per_principal;
    };
    setup.policy(limit).build()
}

async fn session(fixture: &Fixture, user: &str) -> String {
    let principal = Principal { id: user.to_owned(), org: None, roles: Vec::new() };
    let new = NewSession { principal, ..NewSession::new(user, Mode::Text) };
    fixture.orchestrator.create_session(new).await.unwrap().id.clone()
}

async fn pay(fixture: &Fixture, session: &str, id: &str) -> Value {
    fixture.call(session, id, "pay", json!({ "id": id })).await["error"].clone()
}

const ASKED: &str = "CONFIRMATION_REQUIRED";

#[tokio::test]
async fn the_open_requests_of_a_session_are_limited() {
    let fixture = fixture(2, 100);
    let (first, second) = (session(&fixture, "mira").await, session(&fixture, "mira").await);
    assert_eq!(
        [&pay(&fixture, &first, "a").await["type"], &pay(&fixture, &first, "b").await["type"]],
        [ASKED, ASKED]
    );
    fixture.clock.advance(1000);
    assert_eq!(
        pay(&fixture, &first, "c").await,
        json!({ "type": "RATE_LIMIT", "retryable": false, "partialSideEffects": false,
            // Until the first of the two expires, ten minutes after it was made.
            "details": { "retryAfterMs": 599_000 },
            "message": "2 calls of this session wait for approval, and no more may wait at a time.",
            "suggestion": "Ask the user to approve or reject those first." })
    );
    // A repeated call is the same request, and other sessions have their own.
    assert_eq!(
        [&pay(&fixture, &first, "a").await["type"], &pay(&fixture, &second, "a").await["type"]],
        [ASKED, ASKED]
    );
    // A request that has expired does not count, whether or not a sweep has closed it.
    fixture.clock.advance(600_000);
    assert_eq!(pay(&fixture, &first, "c").await["type"], ASKED);
}

#[tokio::test]
async fn the_open_requests_of_a_principal_are_limited() {
    let fixture = fixture(100, 3);
    for id in ["a", "b", "c"] {
        assert_eq!(pay(&fixture, &session(&fixture, "mira").await, id).await["type"], ASKED);
    }
    let refused = pay(&fixture, &session(&fixture, "mira").await, "d").await;
    assert_eq!(refused["message"], "3 calls of this user wait for approval, and no more may wait at a time.");
    assert_eq!(refused["details"], json!({ "retryAfterMs": 600_000 }));
    assert_eq!(pay(&fixture, &session(&fixture, "jon").await, "d").await["type"], ASKED);
}

#[tokio::test]
async fn concurrent_requests_do_not_pass_the_limit() {
    let fixture = fixture(5, 100);
    let session = session(&fixture, "mira").await;
    let calls = (0..40).map(|number| {
        let request = CallRequest::new(&session, call(&format!("c{number}"), "pay", json!({ "n": number })));
        fixture.orchestrator.call(request)
    });
    let envelopes = futures_util::future::join_all(calls).await;
    let asked = envelopes.iter().filter(|envelope| to_json(envelope)["error"]["type"] == ASKED);
    assert_eq!(asked.count(), 5);
    assert_eq!(fixture.orchestrator.pending_confirmations(Some(&session)).await.unwrap().len(), 5);
}

#[tokio::test]
async fn open_requests_are_read_in_pages() {
    let fixture = fixture(100, 100);
    let session = session(&fixture, "mira").await;
    for id in ["a", "b", "c", "d", "e"] {
        pay(&fixture, &session, id).await;
        fixture.clock.advance(1);
    }
    let mut after: Option<(i64, String)> = None;
    let mut pages = Vec::new();
    loop {
        let place = after.as_ref().map(|(at, id)| (*at, id.as_str()));
        let query = PendingQuery { scope: PendingScope::All, after: place, limit: 2 };
        let page = fixture.orchestrator.pending_page(query).await.unwrap();
        pages.push(page.requests.iter().map(|asked| asked.execution.clone()).collect::<String>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, ["ab", "cd", "e"]);
}

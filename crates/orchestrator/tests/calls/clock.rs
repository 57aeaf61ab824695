//! A clock that is set back lengthens nothing: each limit ends after its own time.

use serde_json::json;
use toolwright_contract::{Mode, RateLimit};
use toolwright_orchestrator::store::Backend;

use crate::support::{Fixture, Setup};

const HOUR: i64 = 60 * 60 * 1000;

fn fixture() -> Fixture {
    Setup::new()
        .tool("act", json!({ "permissions": { "rateLimit": { "calls": 1, "window": 1000 } } }))
        .tool("free", json!({}))
        .tool("pay", json!({ "requiresConfirmation": true }))
        .tool("ban", json!({}))
        .policy(|policy| policy.org_rate = Some(RateLimit { calls: 100, window: 60_000 }))
        .build()
}

#[tokio::test]
async fn a_rate_limit_ends_after_its_window() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    assert_eq!(fixture.outcome(&session, "a", "act", json!({})).await, "ok");
    fixture.clock.advance(-HOUR);
    assert_eq!(fixture.outcome(&session, "b", "act", json!({})).await, "RATE_LIMIT");
    fixture.clock.advance(1000);
    assert_eq!(fixture.outcome(&session, "c", "act", json!({})).await, "ok");
}

#[tokio::test]
async fn a_confirmation_request_expires_after_its_time() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    assert_eq!(fixture.outcome(&session, "a", "pay", json!({})).await, "CONFIRMATION_REQUIRED");
    fixture.clock.advance(-HOUR);
    assert_eq!(fixture.orchestrator.pending_confirmations(None).await.unwrap().len(), 1);
    fixture.clock.advance(10 * 60 * 1000);
    assert_eq!(fixture.orchestrator.pending_confirmations(None).await.unwrap(), []);
    fixture.orchestrator.sweep().await.unwrap();
    let rows = fixture.orchestrator.store().audit_rows(0, 10).await.unwrap();
    assert!(rows.last().unwrap().entry.contains("\"event\":\"expired\""));
}

#[tokio::test]
async fn a_session_expires_and_is_deleted_after_its_time() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    fixture.clock.advance(-100 * HOUR);
    assert_eq!(fixture.outcome(&session, "a", "free", json!({})).await, "ok");
    fixture.clock.advance(24 * HOUR);
    assert_eq!(fixture.outcome(&session, "b", "free", json!({})).await, "SESSION_INACTIVE");
    fixture.orchestrator.sweep().await.unwrap();
    assert!(fixture.orchestrator.session(&session).await.unwrap().is_some());
    fixture.clock.advance(-HOUR);
    fixture.orchestrator.sweep().await.unwrap();
    fixture.clock.advance(24 * HOUR);
    fixture.orchestrator.sweep().await.unwrap();
    assert!(fixture.orchestrator.session(&session).await.unwrap().is_none(), "retained for a day");
}

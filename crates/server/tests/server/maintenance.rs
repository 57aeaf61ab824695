//! The periodic jobs of a server.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::json;
use tokio::sync::Semaphore;
use toolwright_contract::Mode;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{
    Backend, ConfirmationStatus, Decision, Durability, SessionRecord, SessionStatus,
};
use toolwright_orchestrator::{CallRequest, ToolCall};

use super::support::{TestServer, orchestrator_of, tool};

#[tokio::test]
async fn a_long_approved_call_does_not_delay_the_sweep() {
    let (runs, permits) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
    let careful = tool("careful", &json!({ "requiresConfirmation": true }));
    let orchestrator = orchestrator_of(vec![careful], &runs, &permits, |builder| builder);
    let session = orchestrator.create_session(NewSession::new("phone", Mode::Text)).await.unwrap();
    let args = json!({ "wait": true });
    let call = ToolCall { id: Some("call".to_owned()), tool: "careful".to_owned(), args: args.clone() };
    orchestrator.call(CallRequest::new(&session.id, call)).await;
    // Its process ends before the approved call begins.
    let store = orchestrator.store();
    let request = orchestrator.pending_confirmations(None).await.unwrap().remove(0);
    let approval =
        Decision::Approve { by: "ada".into(), args, redacted_args: None, edits: Vec::new(), roles: None };
    store.decide_confirmation(&request.id, approval, orchestrator.now()).await.unwrap().unwrap();
    let old = SessionRecord { id: "old".to_owned(), expires_at: 1, ..(*session).clone() };
    store.create_session(old, Durability::Committed).await.unwrap();

    let server = TestServer::with_orchestrator(orchestrator.clone(), runs, permits).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let old = orchestrator.store().session("old").await.unwrap();
        // One that has expired long ago is deleted with the next sweep.
        if old.is_none_or(|old| old.status == SessionStatus::Expired) && server.runs() == 1 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the sweep waits for the approved call");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(server.running_handlers(), 1, "the approved call still runs");
    server.permits.add_permits(1);
    let used = orchestrator.store().confirmation(&request.id).await.unwrap().unwrap();
    assert_eq!(used.status, ConfirmationStatus::Used);
}

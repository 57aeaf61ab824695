//! Regression tests: minimal sequences that once broke a rule.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_contract::{ClientEnvelope, ErrorKind};
use toolwright_orchestrator::CallRequest;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::store::sqlite::{Fault, FaultSwitch};
use toolwright_orchestrator::store::{Backend, Memory, Sqlite, Store, sqlite};

use crate::player::token;
use crate::rules::in_postgres;
use crate::steps::{Kind, TestCall, Tool};
use crate::support::{CONFIRMATION_MS, Fixture, session};

const PAY: TestCall = TestCall { id: 0, tool: Tool::Pay, kind: Kind::Plain };

fn on_disk(directory: &Path) -> Store {
    Store::Sqlite(Sqlite::open(&directory.join("state.db"), sqlite::Options::default()).unwrap())
}

fn approver<'a>(token: &'a str, session: &'a str) -> Approver<'a> {
    Approver { token, proof: AnswerProof::Token, session, client_id: session, by: "mira", principal: None }
}

async fn call(fixture: &Fixture, test_call: TestCall) -> Value {
    let envelope = fixture.orchestrator.call(CallRequest::new(&session(0), test_call.call())).await;
    serde_json::to_value(ClientEnvelope(&envelope)).unwrap()
}

/// Makes a call that needs approval, and returns its token.
async fn request_approval(fixture: &Fixture) -> String {
    let envelope = fixture.orchestrator.call(CallRequest::new(&session(0), PAY.call())).await;
    token(&envelope).unwrap().0
}

async fn a_pending_id_belongs_to_one_call(store: Store) {
    let fixture = Fixture::new(store).await;
    let token = request_approval(&fixture).await;
    let other = call(&fixture, TestCall { kind: Kind::Other, ..PAY }).await;
    assert_eq!(other["error"]["type"], "CONFLICT", "{other}");
    // The first request is still valid.
    let envelope = fixture.orchestrator.approve(&approver(&token, "s0"), None).await.unwrap();
    assert!(envelope.is_ok(), "{envelope:?}");
}

#[tokio::test]
async fn a_pending_id_belongs_to_one_call_in_memory() {
    a_pending_id_belongs_to_one_call(Store::Memory(Memory::default())).await;
}

#[tokio::test]
async fn a_pending_id_belongs_to_one_call_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    a_pending_id_belongs_to_one_call(on_disk(directory.path())).await;
}

#[tokio::test]
async fn a_pending_id_belongs_to_one_call_in_postgres() {
    a_pending_id_belongs_to_one_call(in_postgres().await).await;
}

#[tokio::test]
async fn an_approved_call_runs_even_if_the_approver_disconnects() {
    let directory = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(on_disk(directory.path())).await;
    let token = request_approval(&fixture).await;
    {
        let approver = approver(&token, "s0");
        let approval = fixture.orchestrator.approve(&approver, None);
        // Dropped as soon as the answer is being written.
        tokio::select! {
            biased;
            _ = approval => panic!("the approval did not wait for the disk"),
            () = std::future::ready(()) => {}
        }
    }
    let until_it_runs = async {
        while fixture.history.events().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), until_it_runs).await.expect("the approved call never runs");
    let again = call(&fixture, PAY).await;
    assert_eq!((&again["ok"], &again["meta"]["replayed"]), (&json!(true), &json!(true)), "{again}");
    assert_eq!(fixture.orchestrator.store().approved_confirmations().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_rejection_is_audited_even_if_the_id_was_used_for_another_call() {
    let fixture = Fixture::new(Store::Memory(Memory::default())).await;
    let token = request_approval(&fixture).await;
    assert_eq!(call(&fixture, TestCall { tool: Tool::Note, ..PAY }).await["ok"], true);
    fixture.orchestrator.reject(&approver(&token, "s0"), None).await.unwrap();
    assert_eq!(events(&fixture).await, ["refused", "called", "rejected"]);
}

#[tokio::test]
async fn a_call_is_replayed_while_another_call_tries_its_id() {
    let fixture = Fixture::new(in_postgres().await).await;
    let note = TestCall { tool: Tool::Note, ..PAY };
    let first = call(&fixture, note).await;
    let (other, again) =
        tokio::join!(call(&fixture, TestCall { kind: Kind::Other, ..note }), call(&fixture, note));
    assert_eq!(other["error"]["type"], "CONFLICT", "{other}");
    assert_eq!(again["data"], first["data"], "{again}");
}

async fn an_approval_that_met_another_call_does_not_run_later(store: Store) {
    let fixture = Fixture::new(store).await;
    let token = request_approval(&fixture).await;
    {
        // A read takes the id, and its caller disconnects after the approval: the id is free again.
        let find = call(&fixture, TestCall { tool: Tool::Find, kind: Kind::Waits, ..PAY });
        let approve = async {
            while fixture.history.events().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            fixture.orchestrator.approve(&approver(&token, "s0"), None).await.unwrap()
        };
        let envelope = tokio::select! {
            _ = find => panic!("the read did not wait"),
            envelope = approve => envelope,
        };
        assert_eq!(envelope.outcome.as_ref().unwrap_err().kind, ErrorKind::Conflict, "{envelope:?}");
    }
    assert_eq!(fixture.orchestrator.store().approved_confirmations().await, Ok(Vec::new()));
    assert_eq!(fixture.orchestrator.resume().await, Ok(0));
}

#[tokio::test]
async fn an_approval_that_met_another_call_does_not_run_later_in_memory() {
    an_approval_that_met_another_call_does_not_run_later(Store::Memory(Memory::default())).await;
}

#[tokio::test]
async fn an_approval_that_met_another_call_does_not_run_later_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    an_approval_that_met_another_call_does_not_run_later(on_disk(directory.path())).await;
}

#[tokio::test]
async fn an_approval_that_met_another_call_does_not_run_later_in_postgres() {
    an_approval_that_met_another_call_does_not_run_later(in_postgres().await).await;
}

#[tokio::test]
async fn a_request_whose_caller_disconnects_is_audited_before_it_expires() {
    let directory = tempfile::tempdir().unwrap();
    let faults = FaultSwitch::default();
    let options = sqlite::Options { faults: faults.clone(), ..sqlite::Options::default() };
    let store = Store::Sqlite(Sqlite::open(&directory.path().join("state.db"), options).unwrap());
    let fixture = Fixture::new(store).await;
    let orchestrator = &fixture.orchestrator;
    faults.set(Fault::CommitWaits);
    {
        let call = orchestrator.call(CallRequest::new(&session(0), PAY.call()));
        let until_it_is_stored = async {
            while orchestrator.pending_confirmations(None).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        // Dropped as soon as the request is being written.
        tokio::select! {
            biased;
            () = until_it_is_stored => {}
            _ = call => panic!("the request did not wait for the disk"),
        }
    }
    faults.set(Fault::None);
    assert!(orchestrator.wait_until_idle(Duration::from_secs(60)).await);
    fixture.clock.advance(CONFIRMATION_MS);
    orchestrator.sweep().await.unwrap();
    assert_eq!(events(&fixture).await, ["refused", "expired"]);
}

async fn events(fixture: &Fixture) -> Vec<Value> {
    let store = fixture.orchestrator.store();
    store.flush().await.unwrap();
    let rows = store.audit_rows(0, 100).await.unwrap();
    rows.iter().map(|row| serde_json::from_str::<Value>(&row.entry).unwrap()["event"].clone()).collect()
}

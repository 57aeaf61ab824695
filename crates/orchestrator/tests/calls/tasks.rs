//! Tools that run in the background: the call is answered with a task at once, and the result follows.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_contract::Mode;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{
    Backend, Memory, Postgres, Store, TaskQuery, TaskRecord, TaskScope, TaskStatus, postgres,
};
use toolwright_orchestrator::{CallRequest, SessionRef};

use crate::support::{Fixture, Setup, call, to_json, until};

fn background(fields: Value) -> Value {
    let mut all = json!({ "execution": "background" });
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

fn fixture() -> Fixture {
    Setup::new().tool("work", background(json!({}))).build()
}

/// The id of the task that a call has begun.
fn task_id(envelope: &Value) -> String {
    envelope["data"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
}

async fn ended(fixture: &Fixture, id: &str) -> Arc<TaskRecord> {
    loop {
        let changes = fixture.orchestrator.task_changes(id);
        let task = fixture.orchestrator.task(id).await.unwrap().unwrap();
        if task.has_ended() {
            return task;
        }
        if let Some(mut changes) = changes {
            // An error means that the task has ended.
            let _ = changes.changed().await;
        }
    }
}

async fn result(fixture: &Fixture, task: &TaskRecord) -> Value {
    to_json(&fixture.orchestrator.task_envelope(task).await.unwrap().unwrap())
}

#[tokio::test]
async fn a_call_is_answered_with_a_task_and_its_result_follows() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    let mut deliveries = fixture.orchestrator.deferred_results_for(&session);
    let answer = fixture.call(&session, "c1", "work", json!({ "wait": true })).await;
    assert_eq!((&answer["ok"], &answer["meta"]["executionId"]), (&json!(true), &json!("c1")));
    assert_eq!(answer["data"]["task"]["status"], "queued");
    let id = task_id(&answer);
    fixture.open.add_permits(1);
    let task = ended(&fixture, &id).await;
    assert_eq!(
        (task.status, task.call.as_str(), task.session.as_str()),
        (TaskStatus::Completed, "c1", &*session)
    );
    let delivery = deliveries.recv().await.unwrap();
    assert_eq!((&delivery.execution_id, &delivery.session), (&id, &session));
    let result = result(&fixture, &task).await;
    assert_eq!(result["data"], json!({ "run": 1, "call": id }));
    assert_eq!(result["meta"]["executionId"], json!(id));
}

#[tokio::test]
async fn a_call_that_is_sent_again_is_answered_with_the_same_task() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    let first = fixture.call(&session, "c1", "work", json!({})).await;
    let again = fixture.call(&session, "c1", "work", json!({})).await;
    assert_eq!(task_id(&first), task_id(&again));
    assert_eq!(again["meta"]["replayed"], true);
    assert_eq!(fixture.outcome(&session, "c1", "work", json!({ "other": 1 })).await, "CONFLICT");
    ended(&fixture, &task_id(&first)).await;
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn all_gates_hold_before_a_task_is_begun() {
    let fixture = Setup::new()
        .tool("strict", background(json!({ "jsonSchema": { "type": "object", "required": ["to"] } })))
        .tool("voice", background(json!({ "allowedModes": ["voice"] })))
        .tool("asked", background(json!({ "requiresConfirmation": true })))
        .build();
    let session = fixture.session(Mode::Text).await;
    for (tool, error) in
        [("strict", "VALIDATION"), ("voice", "MODE_RESTRICTED"), ("asked", "CONFIRMATION_REQUIRED")]
    {
        assert_eq!(fixture.outcome(&session, "", tool, json!({})).await, error);
    }
    let all = TaskQuery { scope: TaskScope::All, before: None, limit: 10 };
    assert_eq!(fixture.orchestrator.store().task_page(all).await, Ok(Vec::new()));
    assert_eq!(fixture.done.runs(), 0);
}

#[tokio::test]
async fn a_report_just_before_the_end_is_the_last_progress_of_the_task() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    for (args, status) in [
        (json!({ "wait": true, "progress": 1.0 }), TaskStatus::Completed),
        (json!({ "wait": true, "progress": 0.5, "fail": "PERMANENT" }), TaskStatus::Failed),
    ] {
        fixture.open.add_permits(1);
        let fraction = args["progress"].as_f64();
        let id = task_id(&fixture.call(&session, "", "work", args).await);
        let task = ended(&fixture, &id).await;
        assert_eq!(
            (task.status, task.progress, task.message.as_deref()),
            (status, fraction, Some("the last report"))
        );
    }
}

#[tokio::test]
async fn a_failure_of_the_handler_is_the_result_of_the_task() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    let answer = fixture.call(&session, "c1", "work", json!({ "fail": "PERMANENT" })).await;
    let task = ended(&fixture, &task_id(&answer)).await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(result(&fixture, &task).await["error"]["type"], "PERMANENT");
}

#[tokio::test]
async fn a_running_task_is_cancelled() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    let id = task_id(&fixture.call(&session, "c1", "work", json!({ "wait": true })).await);
    until(|| fixture.done.runs() == 1).await;
    let cancelled = fixture.orchestrator.cancel_task(&id).await.unwrap().unwrap();
    assert!(cancelled.is_cancel_requested);
    let task = ended(&fixture, &id).await;
    assert_eq!(task.status, TaskStatus::Cancelled);
    let error = &result(&fixture, &task).await["error"];
    assert_eq!((&error["type"], &error["partialSideEffects"]), (&json!("TRANSIENT"), &json!(true)));
    assert_eq!(fixture.orchestrator.cancel_task(&id).await.unwrap().unwrap(), task);
    assert_eq!(fixture.orchestrator.cancel_task("task_unknown").await, Ok(None));
}

#[tokio::test]
async fn a_task_that_waits_for_room_is_cancelled_without_running() {
    let mut setup = Setup::new().tool("work", background(json!({})));
    setup.max_background = Some(1);
    let fixture = setup.build();
    let session = fixture.session(Mode::Text).await;
    let running = task_id(&fixture.call(&session, "c1", "work", json!({ "wait": true })).await);
    until(|| fixture.done.runs() == 1).await;
    let waiting = task_id(&fixture.call(&session, "c2", "work", json!({})).await);
    fixture.orchestrator.cancel_task(&waiting).await.unwrap();
    let task = ended(&fixture, &waiting).await;
    assert_eq!(task.status, TaskStatus::Cancelled);
    assert_eq!(result(&fixture, &task).await["error"]["partialSideEffects"], false);
    fixture.open.add_permits(1);
    assert_eq!(ended(&fixture, &running).await.status, TaskStatus::Completed);
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn a_task_runs_on_when_its_session_ends() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    let id = task_id(&fixture.call(&session, "c1", "work", json!({ "wait": true })).await);
    fixture.orchestrator.end_session(&session).await.unwrap();
    fixture.open.add_permits(1);
    assert_eq!(ended(&fixture, &id).await.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_task_does_not_begin_for_a_blocked_client() {
    let mut setup = Setup::new().tool("work", background(json!({})));
    setup.max_background = Some(1);
    let fixture = setup.build();
    let session = fixture.session(Mode::Text).await;
    let first = task_id(&fixture.call(&session, "c1", "work", json!({ "wait": true })).await);
    until(|| fixture.done.runs() == 1).await;
    let second = task_id(&fixture.call(&session, "c2", "work", json!({})).await);
    let record = fixture.orchestrator.session(&session).await.unwrap().unwrap();
    let until = fixture.orchestrator.now() + 60_000;
    let block = toolwright_orchestrator::store::BlockRecord::new(&record.principal, "client", until);
    fixture.orchestrator.store().block(block).await.unwrap();
    fixture.open.add_permits(1);
    assert_eq!(ended(&fixture, &first).await.status, TaskStatus::Completed);
    let task = ended(&fixture, &second).await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(result(&fixture, &task).await["error"]["type"], "AUTH");
    assert_eq!(fixture.done.runs(), 1);
}

#[tokio::test]
async fn a_call_without_a_session_begins_a_task_in_one_of_its_own() {
    let read = json!({ "category": "retrieval", "sideEffects": "read_only", "idempotent": true });
    let fixture = Setup::new().tool("look", background(read)).build();
    let session = SessionRef::Ephemeral(NewSession::new("client", Mode::Text));
    let request = CallRequest::new(session, call("c1", "look", json!({})));
    let answer = to_json(&fixture.orchestrator.call(request).await);
    let task = ended(&fixture, &task_id(&answer)).await;
    assert_eq!(task.status, TaskStatus::Completed);
    assert!(fixture.orchestrator.session(&task.session).await.unwrap().is_some());
}

#[tokio::test]
async fn the_audit_has_the_call_and_the_run_of_its_task() {
    let fixture = fixture();
    let session = fixture.session(Mode::Text).await;
    let id = task_id(&fixture.call(&session, "c1", "work", json!({})).await);
    ended(&fixture, &id).await;
    let rows = fixture.orchestrator.store().audit_rows(0, 10).await.unwrap();
    let entries = rows.iter().map(|row| {
        let entry: Value = serde_json::from_str(&row.entry).unwrap();
        (entry["event"].clone(), entry["executionId"].clone(), entry["parent"].clone())
    });
    let expected = [(json!("queued"), json!("c1"), Value::Null), (json!("called"), json!(id), json!("c1"))];
    assert_eq!(entries.collect::<Vec<_>>(), expected);
    let metrics = fixture.orchestrator.metrics();
    assert_eq!((metrics.len(), metrics[0].calls), (1, 1));
}

#[tokio::test]
async fn a_stopped_process_begins_no_task() {
    let store = || Store::Memory(Memory::default());
    let fixture = Setup::new().tool("work", background(json!({}))).build_on(store());
    let session = fixture.session(Mode::Text).await;
    fixture.orchestrator.stop_tasks();
    let id = task_id(&fixture.call(&session, "c1", "work", json!({})).await);
    while fixture.orchestrator.task_changes(&id).is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.orchestrator.task(&id).await.unwrap().unwrap().status, TaskStatus::Queued);
    assert_eq!(fixture.done.runs(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_end_the_database_has_refused_is_in_doubt() {
    let url = std::env::var("TOOLWRIGHT_TEST_POSTGRES").expect("TOOLWRIGHT_TEST_POSTGRES: see scripts/test");
    let schema = format!("task {}", std::process::id());
    let options = postgres::Options {
        schema: schema.clone(),
        connections: 4,
        settle_timeout: Duration::ZERO,
        ..postgres::Options::default()
    };
    let store = Store::Postgres(Postgres::connect(&url, options).await.unwrap());
    let fixture = Setup::new().tool("work", background(json!({}))).build_on(store);
    let (client, driver) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(driver);
    let session = fixture.session(Mode::Text).await;
    let id = task_id(&fixture.call(&session, "c1", "work", json!({ "wait": true })).await);
    until(|| fixture.done.runs() == 1).await;
    let full = format!("ALTER TABLE \"{schema}\".audit ADD CONSTRAINT full_disk CHECK (false) NOT VALID");
    client.batch_execute(&full).await.unwrap();
    fixture.open.add_permits(1);
    let task = ended(&fixture, &id).await;
    assert_eq!(task.status, TaskStatus::InDoubt);
    assert_eq!(result(&fixture, &task).await["error"]["partialSideEffects"], true);
}

//! How calls run: concurrency, retry, deadlines, cancellation.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use serde_json::{Value, json};
use toolwright_contract::{Failure, Mode, Success};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, Durability, SettleOutcome, Settlement};
use toolwright_orchestrator::{CallRequest, Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::support::{Setup, call, message, retrieval, to_json, tool, until};

#[tokio::test]
async fn reads_of_one_message_run_concurrently_and_results_keep_their_order() {
    let fixture = Arc::new(Setup::new().tool("find", retrieval()).build());
    let session = fixture.session(Mode::Text).await;
    let calls = (0..4).map(|n| call(&format!("c{n}"), "find", json!({ "wait": true }))).collect();
    let running = {
        let (fixture, session) = (Arc::clone(&fixture), session.clone());
        tokio::spawn(async move { message(&fixture.orchestrator, &session, calls).await })
    };
    until(|| fixture.done.now.load(Ordering::SeqCst) == 4).await;
    fixture.open.add_permits(4);
    let ids: Vec<Value> =
        running.await.unwrap().iter().map(|answer| to_json(answer)["data"]["call"].clone()).collect();
    assert_eq!(ids, ["c0", "c1", "c2", "c3"]);
}

#[tokio::test]
async fn if_one_call_writes_all_run_in_order() {
    let fixture = Setup::new().tool("find", retrieval()).tool("act", json!({})).build();
    let session = fixture.session(Mode::Text).await;
    let calls = ["find", "act", "find", "act"].iter().enumerate();
    let calls = calls.map(|(n, tool)| call("", tool, json!({ "n": n }))).collect();
    let results = message(&fixture.orchestrator, &session, calls).await;
    assert!(results.iter().all(|envelope| envelope.is_ok()));
    assert_eq!(fixture.done.most.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.done.args().iter().map(|args| args["n"].clone()).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_transient_failure_of_an_idempotent_tool_is_retried_once_in_text_only() {
    let fields = |idempotent: bool| json!({ "idempotent": idempotent, "sideEffects": "read_only", "category": "utility" });
    for (mode, idempotent, args, runs) in [
        (Mode::Text, true, json!({ "fail_times": 1 }), 2),
        (Mode::Text, true, json!({ "fail_times": 9 }), 2),
        (Mode::Text, false, json!({ "fail_times": 1 }), 1),
        (Mode::Voice, true, json!({ "fail_times": 1 }), 1),
        (Mode::Text, true, json!({ "fail_times": 1, "final": true }), 1),
        (Mode::Text, true, json!({ "fail": "PERMANENT" }), 1),
    ] {
        let fixture = Setup::new().tool("look", fields(idempotent)).build();
        let session = fixture.session(mode).await;
        let envelope = fixture.call(&session, "c1", "look", args.clone()).await;
        assert_eq!(fixture.done.runs(), runs, "{mode} {idempotent} {args}");
        if runs == 2 {
            assert_eq!(envelope["meta"]["retries"], 1, "{envelope}");
        }
    }
}

#[tokio::test]
async fn a_write_continues_when_its_caller_disconnects_and_is_recorded() {
    let fixture = Arc::new(Setup::new().tool("act", json!({})).build());
    let session = fixture.session(Mode::Text).await;
    let running = {
        let (fixture, session) = (Arc::clone(&fixture), session.clone());
        tokio::spawn(async move { fixture.call(&session, "c1", "act", json!({ "wait": true })).await })
    };
    until(|| fixture.done.runs() == 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    fixture.open.add_permits(1);
    let again = fixture.call(&session, "c1", "act", json!({ "wait": true })).await;
    assert_eq!(
        (&again["data"]["run"], &again["meta"]["replayed"], fixture.done.runs()),
        (&json!(1), &json!(true), 1)
    );
}

#[tokio::test]
async fn a_read_is_cancelled_with_its_caller_and_may_be_repeated() {
    let fixture = Arc::new(Setup::new().tool("find", retrieval()).build());
    let session = fixture.session(Mode::Text).await;
    let running = {
        let (fixture, session) = (Arc::clone(&fixture), session.clone());
        tokio::spawn(async move { fixture.call(&session, "c1", "find", json!({ "wait": true })).await })
    };
    until(|| fixture.done.runs() == 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    fixture.open.add_permits(1);
    let again = fixture.call(&session, "c1", "find", json!({ "wait": true })).await;
    assert_eq!((&again["ok"], fixture.done.runs()), (&json!(true), 2));
}

#[tokio::test]
async fn a_timeout_is_transient_and_reports_possible_side_effects() {
    let slow = |fields: Value| {
        let mut fields = fields;
        fields["timeoutMs"] = json!(20);
        Setup::new().tool("slow", fields).build()
    };
    let fixture = slow(json!({}));
    let error = fixture.call(&fixture.session(Mode::Text).await, "c1", "slow", json!({ "wait": true })).await;
    assert_eq!(
        (&error["error"]["type"], &error["error"]["partialSideEffects"]),
        (&json!("TRANSIENT"), &json!(true))
    );
    let fixture = slow(retrieval());
    let error =
        fixture.call(&fixture.session(Mode::Voice).await, "c1", "slow", json!({ "wait": true })).await;
    assert_eq!(
        (&error["error"]["type"], &error["error"]["partialSideEffects"]),
        (&json!("TRANSIENT"), &json!(false))
    );
}

#[tokio::test]
async fn what_a_model_reads_depends_on_error_and_mode() {
    let fixture = Setup::new()
        .tool("act", json!({ "jsonSchema": { "type": "object", "required": ["x"] } }))
        .tool("try", json!({}))
        .build();
    let model_reads = async |mode, tool: &'static str, args| {
        let id = fixture.session(mode).await;
        let envelope = fixture.orchestrator.call(CallRequest::new(&id, call("c1", tool, args))).await;
        let session = fixture.orchestrator.session(&id).await.unwrap().unwrap();
        fixture.orchestrator.for_model(&session, &envelope)
    };
    let validation = model_reads(Mode::Text, "act", json!({})).await;
    assert_eq!(
        (&validation["type"], &validation["documentation"]),
        (&json!("VALIDATION"), &json!("Does work."))
    );
    assert!(validation["suggestion"].is_string() && validation["details"].is_array());
    let passing = json!({ "fail": "TRANSIENT" });
    assert_eq!(model_reads(Mode::Text, "try", passing.clone()).await["retryable"], true);
    assert_eq!(model_reads(Mode::Voice, "try", passing).await["retryable"], false);
    let permanent = model_reads(Mode::Text, "try", json!({ "fail": "PERMANENT", "final": true })).await;
    assert_eq!((&permanent["retryable"], permanent.get("documentation")), (&json!(false), None));
    let fine = model_reads(Mode::Text, "try", json!({})).await;
    assert_eq!((&fine["ok"], &fine["data"]["call"]), (&json!(true), &json!("c1")));
}

/// Is ready at once, and panics when it is dropped: outside of the handler's own panic guard.
struct Bomb;

impl Future for Bomb {
    type Output = Result<Success, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(Value::Null.into()))
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("boom");
    }
}

#[tokio::test]
async fn a_panic_outside_of_the_handler_settles_the_call() {
    for (fields, partial) in [(json!({}), true), (retrieval(), false)] {
        let (toolset, _) = Toolset::empty().with_declared(Path::new("t.json"), vec![tool("act", &fields)]);
        let runtime = Runtime::builder(Arc::new(toolset), ".").native("work", |_, _| Bomb).build();
        let orchestrator = Orchestrator::builder(runtime).build().unwrap();
        let session = orchestrator.create_session(NewSession::new("client", Mode::Text)).await.unwrap();
        let first =
            to_json(&orchestrator.call(CallRequest::new(&session.id, call("c1", "act", json!({})))).await);
        assert_eq!(
            (&first["error"]["type"], &first["error"]["partialSideEffects"]),
            (&json!("INTERNAL"), &json!(partial))
        );
        let again =
            to_json(&orchestrator.call(CallRequest::new(&session.id, call("c1", "act", json!({})))).await);
        assert_eq!((&again["error"], &again["meta"]["replayed"]), (&first["error"], &json!(true)));
    }
}

#[tokio::test]
async fn duplicates_of_a_write_get_its_result_when_its_caller_disconnects() {
    let fixture = Arc::new(Setup::new().tool("act", json!({})).build());
    let session = fixture.session(Mode::Text).await;
    let run = || {
        let (fixture, session) = (Arc::clone(&fixture), session.clone());
        tokio::spawn(async move { fixture.call(&session, "c1", "act", json!({ "wait": true })).await })
    };
    let first = run();
    until(|| fixture.done.runs() == 1).await;
    let second = run();
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    fixture.open.add_permits(1);
    let envelope = second.await.unwrap();
    assert_eq!((&envelope["data"]["run"], &envelope["meta"]["replayed"]), (&json!(1), &json!(true)));
}

#[tokio::test]
async fn a_late_owner_returns_the_recorded_envelope() {
    let fixture = Arc::new(Setup::new().tool("act", json!({})).build());
    let session = fixture.session(Mode::Text).await;
    let running = {
        let (fixture, session) = (Arc::clone(&fixture), session.clone());
        tokio::spawn(async move { fixture.call(&session, "c1", "act", json!({ "wait": true })).await })
    };
    until(|| fixture.done.runs() == 1).await;
    let other = fixture.orchestrator.call(CallRequest::new(&session, call("c2", "act", json!({})))).await;
    let rows = fixture.orchestrator.store().audit_rows(0, 10).await.unwrap();
    let settlement = Settlement {
        session: session.clone(),
        execution: "c1".into(),
        envelope: other,
        args: None,
        audit: serde_json::from_str(&rows[0].entry).unwrap(),
        durability: Durability::Committed,
    };
    assert_eq!(fixture.orchestrator.store().settle(settlement).await, Ok(SettleOutcome::Recorded));
    fixture.open.add_permits(1);
    let answer = running.await.unwrap();
    assert_eq!((&answer["data"]["call"], &answer["meta"]["replayed"]), (&json!("c2"), &json!(true)));
}

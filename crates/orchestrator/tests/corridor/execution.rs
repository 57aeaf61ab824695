//! How calls run: at the same time or in order, again or not, to the end or cancelled.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use serde_json::{Value, json};
use toolwright_contract::{Failure, Mode, Success};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, Durability, Settled, Settlement};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::support::{Setup, call, retrieval, shown, tool, until};

#[tokio::test]
async fn reads_of_one_message_run_at_the_same_time_and_answers_keep_their_order() {
    let desk = Arc::new(Setup::new().tool("find", retrieval()).desk());
    let session = desk.session(Mode::Text).await;
    let calls = (0..4).map(|n| call(&format!("c{n}"), "find", json!({ "wait": true }))).collect();
    let running = {
        let (desk, session) = (Arc::clone(&desk), session.clone());
        tokio::spawn(async move { desk.orchestrator.calls(&session, calls).await })
    };
    until(|| desk.done.now.load(Ordering::SeqCst) == 4).await;
    desk.open.add_permits(4);
    let ids: Vec<Value> =
        running.await.unwrap().iter().map(|answer| shown(answer)["data"]["call"].clone()).collect();
    assert_eq!(ids, ["c0", "c1", "c2", "c3"]);
}

#[tokio::test]
async fn as_soon_as_one_writes_all_run_in_order() {
    let desk = Setup::new().tool("find", retrieval()).tool("act", json!({})).desk();
    let session = desk.session(Mode::Text).await;
    let calls = ["find", "act", "find", "act"].iter().enumerate();
    let calls = calls.map(|(n, tool)| call("", tool, json!({ "n": n }))).collect();
    let answers = desk.orchestrator.calls(&session, calls).await;
    assert!(answers.iter().all(toolwright_contract::Envelope::is_ok));
    assert_eq!(desk.done.most.load(Ordering::SeqCst), 1);
    assert_eq!(desk.done.args().iter().map(|args| args["n"].clone()).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[tokio::test]
async fn a_passing_failure_of_an_idempotent_tool_is_tried_once_more_in_text_only() {
    let fields = |idempotent: bool| json!({ "idempotent": idempotent, "sideEffects": "read_only", "category": "utility" });
    for (mode, idempotent, args, runs) in [
        (Mode::Text, true, json!({ "fail_times": 1 }), 2),
        (Mode::Text, true, json!({ "fail_times": 9 }), 2),
        (Mode::Text, false, json!({ "fail_times": 1 }), 1),
        (Mode::Voice, true, json!({ "fail_times": 1 }), 1),
        (Mode::Text, true, json!({ "fail_times": 1, "final": true }), 1),
        (Mode::Text, true, json!({ "fail": "PERMANENT" }), 1),
    ] {
        let desk = Setup::new().tool("look", fields(idempotent)).desk();
        let session = desk.session(mode).await;
        let envelope = desk.call(&session, "c1", "look", args.clone()).await;
        assert_eq!(desk.done.runs(), runs, "{mode} {idempotent} {args}");
        if runs == 2 {
            assert_eq!(envelope["meta"]["retries"], 1, "{envelope}");
        }
    }
}

#[tokio::test]
async fn a_write_goes_on_when_its_caller_has_gone_and_is_recorded() {
    let desk = Arc::new(Setup::new().tool("act", json!({})).desk());
    let session = desk.session(Mode::Text).await;
    let running = {
        let (desk, session) = (Arc::clone(&desk), session.clone());
        tokio::spawn(async move { desk.call(&session, "c1", "act", json!({ "wait": true })).await })
    };
    until(|| desk.done.runs() == 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    desk.open.add_permits(1);
    let again = desk.call(&session, "c1", "act", json!({ "wait": true })).await;
    assert_eq!(
        (&again["data"]["run"], &again["meta"]["replayed"], desk.done.runs()),
        (&json!(1), &json!(true), 1)
    );
}

#[tokio::test]
async fn a_read_ends_with_its_caller_and_may_be_asked_again() {
    let desk = Arc::new(Setup::new().tool("find", retrieval()).desk());
    let session = desk.session(Mode::Text).await;
    let running = {
        let (desk, session) = (Arc::clone(&desk), session.clone());
        tokio::spawn(async move { desk.call(&session, "c1", "find", json!({ "wait": true })).await })
    };
    until(|| desk.done.runs() == 1).await;
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    desk.open.add_permits(1);
    let again = desk.call(&session, "c1", "find", json!({ "wait": true })).await;
    assert_eq!((&again["ok"], desk.done.runs()), (&json!(true), 2));
}

#[tokio::test]
async fn a_hard_deadline_is_transient_and_says_whether_effects_are_possible() {
    let slow = |fields: Value| {
        let mut fields = fields;
        fields["timeoutMs"] = json!(20);
        Setup::new().tool("slow", fields).desk()
    };
    let desk = slow(json!({}));
    let error = desk.call(&desk.session(Mode::Text).await, "c1", "slow", json!({ "wait": true })).await;
    assert_eq!(
        (&error["error"]["type"], &error["error"]["partialSideEffects"]),
        (&json!("TRANSIENT"), &json!(true))
    );
    let desk = slow(retrieval());
    let error = desk.call(&desk.session(Mode::Voice).await, "c1", "slow", json!({ "wait": true })).await;
    assert_eq!(
        (&error["error"]["type"], &error["error"]["partialSideEffects"]),
        (&json!("TRANSIENT"), &json!(false))
    );
}

#[tokio::test]
async fn what_a_model_is_told_depends_on_error_and_mode() {
    let desk = Setup::new()
        .tool("act", json!({ "jsonSchema": { "type": "object", "required": ["x"] } }))
        .tool("try", json!({}))
        .desk();
    let told = async |mode, tool: &'static str, args| {
        let id = desk.session(mode).await;
        let envelope = desk.orchestrator.call(&id, call("c1", tool, args)).await;
        let session = desk.orchestrator.session(&id).await.unwrap().unwrap();
        desk.orchestrator.for_model(&session, &envelope)
    };
    let validation = told(Mode::Text, "act", json!({})).await;
    assert_eq!(
        (&validation["type"], &validation["documentation"]),
        (&json!("VALIDATION"), &json!("Does work."))
    );
    assert!(validation["suggestion"].is_string() && validation["details"].is_array());
    let passing = json!({ "fail": "TRANSIENT" });
    assert_eq!(told(Mode::Text, "try", passing.clone()).await["retryable"], true);
    assert_eq!(told(Mode::Voice, "try", passing).await["retryable"], false);
    let permanent = told(Mode::Text, "try", json!({ "fail": "PERMANENT", "final": true })).await;
    assert_eq!((&permanent["retryable"], permanent.get("documentation")), (&json!(false), None));
    let fine = told(Mode::Text, "try", json!({})).await;
    assert_eq!((&fine["ok"], &fine["data"]["call"]), (&json!(true), &json!("c1")));
}

/// Done at once, and fails when it is let go: outside of all that a handler may do wrong.
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
    for fields in [json!({}), retrieval()] {
        let (toolset, _) = Toolset::empty().with_declared(Path::new("t.json"), vec![tool("act", &fields)]);
        let runtime = Runtime::builder(Arc::new(toolset), ".").native("work", |_, _| Bomb).build();
        let orchestrator = Orchestrator::builder(runtime).build().unwrap();
        let session = orchestrator.create_session(NewSession::new("client", Mode::Text)).await.unwrap();
        let first = shown(&orchestrator.call(&session.id, call("c1", "act", json!({}))).await);
        assert_eq!(
            (&first["error"]["type"], &first["error"]["partialSideEffects"]),
            (&json!("INTERNAL"), &json!(true))
        );
        let again = shown(&orchestrator.call(&session.id, call("c1", "act", json!({}))).await);
        assert_eq!((&again["error"], &again["meta"]["replayed"]), (&first["error"], &json!(true)));
    }
}

#[tokio::test]
async fn those_who_wait_for_a_write_get_its_result_when_its_caller_has_gone() {
    let desk = Arc::new(Setup::new().tool("act", json!({})).desk());
    let session = desk.session(Mode::Text).await;
    let run = || {
        let (desk, session) = (Arc::clone(&desk), session.clone());
        tokio::spawn(async move { desk.call(&session, "c1", "act", json!({ "wait": true })).await })
    };
    let first = run();
    until(|| desk.done.runs() == 1).await;
    let second = run();
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    desk.open.add_permits(1);
    let envelope = second.await.unwrap();
    assert_eq!((&envelope["data"]["run"], &envelope["meta"]["replayed"]), (&json!(1), &json!(true)));
}

#[tokio::test]
async fn an_owner_that_comes_late_answers_what_is_recorded() {
    let desk = Arc::new(Setup::new().tool("act", json!({})).desk());
    let session = desk.session(Mode::Text).await;
    let running = {
        let (desk, session) = (Arc::clone(&desk), session.clone());
        tokio::spawn(async move { desk.call(&session, "c1", "act", json!({ "wait": true })).await })
    };
    until(|| desk.done.runs() == 1).await;
    let other = desk.orchestrator.call(&session, call("c2", "act", json!({}))).await;
    let rows = desk.orchestrator.store().audit(0, 10).await.unwrap();
    let settlement = Settlement {
        session: session.clone(),
        execution: "c1".into(),
        envelope: Arc::new(other),
        audit: serde_json::from_str(&rows[0].entry).unwrap(),
        now: 0,
        durability: Durability::Committed,
    };
    assert_eq!(desk.orchestrator.store().settle(settlement).await, Ok(Settled::First));
    desk.open.add_permits(1);
    let answer = running.await.unwrap();
    assert_eq!((&answer["data"]["call"], &answer["meta"]["replayed"]), (&json!("c2"), &json!(true)));
}

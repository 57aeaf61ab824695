//! How many handlers run at a time: no tool, principal or call takes all seats, and whoever waits does so in turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolwright_contract::Mode;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{CallRequest, Capacity, Context, Orchestrator, SessionRef, ToolCall};
use toolwright_registry::toolset::Implementation;

use crate::support::{ToolsetBuilder, request, to_json};

/// How many calls are inside the native tool `gate`, which waits until a test opens it.
struct Gate {
    open: Semaphore,
    inside: AtomicUsize,
    most: AtomicUsize,
}

struct Bench {
    orchestrator: Orchestrator,
    gate: Arc<Gate>,
    _dir: TempDir,
}

const THROUGH_GATE: &str = "await context.callTool('gate', {}); return { ok: true, data: 'passed' }";

fn bench(tools: ToolsetBuilder, capacity: Capacity) -> Bench {
    let gate =
        Arc::new(Gate { open: Semaphore::new(0), inside: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    let shared = Arc::clone(&gate);
    let wait = move |_: Value, _: Context| {
        let gate = Arc::clone(&shared);
        async move {
            let inside = gate.inside.fetch_add(1, Ordering::SeqCst) + 1;
            gate.most.fetch_max(inside, Ordering::SeqCst);
            let passed = gate.open.acquire().await;
            gate.inside.fetch_sub(1, Ordering::SeqCst);
            passed.unwrap().forget();
            Ok(json!("open").into())
        }
    };
    let fields = json!({ "sideEffects": "none", "timeoutMs": 30000 });
    let (builder, dir) = tools.add("gate", fields, Implementation::Native("gate".to_owned())).builder();
    let runtime = builder.native("gate", wait).build();
    let orchestrator = Orchestrator::builder(runtime).capacity(capacity).build().unwrap();
    Bench { orchestrator, gate, _dir: dir }
}

impl Bench {
    async fn call(&self, user: &str, tool: &str) -> Value {
        call(self.orchestrator.clone(), user.to_owned(), tool.to_owned()).await
    }

    fn start(&self, calls: &mut JoinSet<Value>, count: usize, user: &str, tool: &str) {
        for _ in 0..count {
            calls.spawn(call(self.orchestrator.clone(), user.to_owned(), tool.to_owned()));
        }
    }

    /// Waits until this many calls run and wait for a seat.
    async fn until_used(&self, running: usize, waiting: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let used = self.orchestrator.capacity_use();
            if (used.running, used.waiting) == (running, waiting) {
                return;
            }
            assert!(Instant::now() < deadline, "{used:?}, not {running} and {waiting}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn call(orchestrator: Orchestrator, user: String, tool: String) -> Value {
    let request = request(&orchestrator, NewSession::new(user, Mode::Text), &tool, json!({})).await;
    to_json(&orchestrator.call(request).await)
}

fn slow() -> Value {
    json!({ "timeoutMs": 30000 })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_calls_of_one_tool_do_not_hold_back_another() {
    let tools = ToolsetBuilder::new().tool("endless", json!({ "timeoutMs": 4000 }), "for (;;) {}").tool(
        "good",
        json!({}),
        "return { ok: true, data: 1 }",
    );
    let bench = bench(tools, Capacity::with_concurrency(4));
    let mut endless = JoinSet::new();
    bench.start(&mut endless, 64, "mallory", "endless");
    bench.until_used(2, 62).await;
    for user in ["mallory", "mira"] {
        let started = Instant::now();
        assert_eq!(bench.call(user, "good").await["data"], 1);
        let elapsed = started.elapsed();
        assert!(elapsed < Duration::from_millis(900), "{user} waited {elapsed:?}");
    }
    assert!(bench.orchestrator.capacity_use().waiting > 0, "the endless calls still wait");
    while let Some(ended) = endless.join_next().await {
        let error = ended.unwrap()["error"]["type"].clone();
        assert!(["INTERNAL", "TRANSIENT", "RATE_LIMIT"].map(Value::from).contains(&error), "{error}");
    }
    bench.until_used(0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_with_many_nested_calls_leaves_seats_for_others() {
    let fan_out = "const calls = Array.from({ length: 40 }, () => context.callTool('inner', {}));
        const done = await Promise.all(calls);
        return { ok: true, data: done.filter((inner) => inner.data === 'passed').length }";
    let once = "return { ok: true, data: (await context.callTool('inner', {})).data }";
    let tools = ToolsetBuilder::new().tool("fan_out", slow(), fan_out).tool("once", slow(), once).tool(
        "inner",
        slow(),
        THROUGH_GATE,
    );
    let capacity = Capacity { max_nested_per_call: 3, ..Capacity::with_concurrency(16) };
    let bench = bench(tools, Capacity { max_wait: Duration::from_secs(30), ..capacity });
    let mut calls = JoinSet::new();
    bench.start(&mut calls, 1, "mallory", "fan_out");
    bench.until_used(4, 37).await;
    bench.start(&mut calls, 1, "mira", "once");
    bench.until_used(6, 37).await;
    bench.gate.open.add_permits(41);
    let mut data = Vec::new();
    while let Some(ended) = calls.join_next().await {
        data.push(ended.unwrap()["data"].to_string());
    }
    data.sort();
    assert_eq!(data, ["\"passed\"", "40"]);
    assert!(bench.gate.most.load(Ordering::SeqCst) <= 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_calls_never_deadlock() {
    let mut tools = ToolsetBuilder::new().tool("t4", slow(), "return { ok: true, data: 1 }");
    for level in 1..=3 {
        let next = level + 1;
        let body = format!(
            "const calls = await Promise.all([1, 2].map(() => context.callTool('t{next}', {{}})));
             return {{ ok: true, data: calls.reduce((sum, call) => sum + call.data, 0) }}"
        );
        tools = tools.tool(&format!("t{level}"), slow(), &body);
    }
    let capacity = Capacity { max_wait: Duration::from_secs(30), ..Capacity::with_concurrency(2) };
    let bench = bench(tools, Capacity { max_concurrent_per_tool: 2, ..capacity });
    let mut calls = JoinSet::new();
    bench.start(&mut calls, 8, "mira", "t1");
    bench.start(&mut calls, 8, "jon", "t2");
    let mut sum = 0;
    while let Some(ended) = calls.join_next().await {
        let envelope = ended.unwrap();
        sum += envelope["data"].as_u64().unwrap_or_else(|| panic!("{envelope}"));
    }
    assert_eq!(sum, 8 * 8 + 8 * 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_finds_no_seat_is_refused_and_may_be_sent_again() {
    let tools = ToolsetBuilder::new()
        .tool("busy", slow(), THROUGH_GATE)
        .tool("other", slow(), THROUGH_GATE)
        .add("mock", json!({}), Implementation::Mock(json!(1)));
    let bench = bench(tools, Capacity { max_waiting: 0, ..Capacity::with_concurrency(2) });
    let mut calls = JoinSet::new();
    bench.start(&mut calls, 1, "mira", "busy");
    bench.until_used(1, 0).await;

    let session = NewSession::new("mira", Mode::Text);
    let again = request(&bench.orchestrator, session, "busy", json!({})).await;
    let refused = to_json(&bench.orchestrator.call(again.clone()).await);
    assert_eq!(
        refused["error"],
        json!({ "type": "RATE_LIMIT", "message": "The tool `busy` has 1 calls running, which is its limit (`max_concurrent_per_tool`).",
            "retryable": true, "partialSideEffects": false, "details": { "retryAfterMs": 1000 },
            "suggestion": "Call it again when one of its calls has ended, or use another tool." })
    );
    bench.start(&mut calls, 1, "jon", "other");
    bench.until_used(2, 0).await;
    assert_eq!(bench.call("ada", "third").await["error"]["type"], "NOT_FOUND");
    assert_eq!(bench.call("ada", "other").await["error"]["type"], "RATE_LIMIT");
    assert_eq!(bench.call("ada", "mock").await["data"], 1);

    bench.gate.open.add_permits(3);
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap()["data"], "passed");
    }
    assert_eq!(to_json(&bench.orchestrator.call(again).await)["data"], "passed", "nothing was recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_while_its_call_waits_refuses_the_call() {
    let tools = ToolsetBuilder::new().tool("busy", slow(), THROUGH_GATE);
    let bench = bench(tools, Capacity::with_concurrency(1));
    let mut calls = JoinSet::new();
    bench.start(&mut calls, 1, "mira", "busy");
    bench.until_used(1, 0).await;
    let session = NewSession { id: Some("ends".to_owned()), ..NewSession::new("jon", Mode::Text) };
    let waiting = request(&bench.orchestrator, session, "busy", json!({})).await;
    let orchestrator = bench.orchestrator.clone();
    let waiting = tokio::spawn(async move { to_json(&orchestrator.call(waiting).await) });
    bench.until_used(1, 1).await;
    bench.orchestrator.end_session("ends").await.unwrap();
    bench.gate.open.add_permits(1);
    assert_eq!(waiting.await.unwrap()["error"]["type"], "SESSION_INACTIVE");
    assert_eq!(calls.join_next().await.unwrap().unwrap()["data"], "passed");
    bench.until_used(0, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_kept_while_the_server_is_full() {
    let fields = json!({ "requiresConfirmation": true, "sideEffects": "writes", "idempotent": false });
    let tools = ToolsetBuilder::new().tool("slow", slow(), THROUGH_GATE).tool(
        "send",
        fields,
        "return { ok: true, data: 'sent' }",
    );
    let capacity = Capacity { max_wait: Duration::from_millis(50), ..Capacity::with_concurrency(1) };
    let bench = bench(tools, capacity);
    let orchestrator = &bench.orchestrator;
    let session = orchestrator.create_session(NewSession::new("mira", Mode::Text)).await.unwrap();
    let call = ToolCall { id: Some("send-1".to_owned()), tool: "send".to_owned(), args: json!({}) };
    let asked = orchestrator.call(CallRequest::new(SessionRef::Loaded(session.clone()), call)).await;
    assert_eq!(to_json(&asked)["error"]["type"], "CONFIRMATION_REQUIRED");
    let pending = orchestrator.pending_confirmations(Some(&session.id)).await.unwrap();

    let mut others = JoinSet::new();
    bench.start(&mut others, 1, "mira", "slow");
    bench.until_used(1, 0).await;
    let approver = Approver {
        token: &pending[0].id,
        proof: AnswerProof::Transport,
        session: &session.id,
        client_id: &session.client_id,
        by: "mira",
        principal: None,
    };
    let refused = to_json(&orchestrator.approve(&approver, None).await.unwrap());
    assert_eq!(refused["error"]["retryable"], true, "{refused}");

    bench.gate.open.add_permits(1);
    others.join_all().await;
    assert_eq!(orchestrator.resume().await, Ok(1));
    let recorded = orchestrator.recorded_envelope(&session.id, "send-1").await.unwrap().unwrap();
    assert_eq!(to_json(&recorded)["data"], "sent");
    assert_eq!(orchestrator.resume().await, Ok(0));
}

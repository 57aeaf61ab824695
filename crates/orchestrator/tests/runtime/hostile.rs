//! Hostile handlers: each gets an envelope, the process survives, and concurrent calls are not affected.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_contract::Mode;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::{Limits, Runtime, SessionRef};

use crate::support::{
    ToolsetBuilder, assert_internal, call, orchestrator, reference_tools, request, to_json,
};

const GOOD: &str = "let n = 0; for (const x of args.list) n += x; await null; return { ok: true, data: n }";

fn limits() -> Limits {
    Limits { cpu: Duration::from_millis(300), memory_bytes: 16 << 20, ..Limits::within(Duration::ZERO) }
}

/// Runs the hostile body while a good tool is called repeatedly, and returns its envelope.
async fn beside_a_good_call(body: &str) -> Value {
    // Far longer than the CPU time limit: a busy machine is slow.
    let fields = json!({ "timeoutMs": if body.contains("setTimeout") { 300 } else { 30000 } });
    let (builder, _dir) =
        ToolsetBuilder::new().tool("bad", fields, body).tool("good", json!({}), GOOD).builder();
    let runtime = Arc::new(builder.limits(limits()).build());
    let hostile = {
        let runtime = Arc::clone(&runtime);
        tokio::spawn(async move { call(&runtime, "bad", json!({})).await })
    };
    let mut good = 0;
    while !hostile.is_finished() || good < 3 {
        let envelope = call(&runtime, "good", json!({ "list": [1, 2, 3] })).await;
        assert_eq!(envelope["data"], 6, "a concurrent call was affected: {envelope}");
        good += 1;
    }
    hostile.await.unwrap()
}

async fn is_stopped(body: &str, message: &str) {
    let envelope = beside_a_good_call(body).await;
    assert_eq!(envelope["error"]["message"], message, "{body}: {envelope}");
    assert_eq!(envelope["error"]["partialSideEffects"], true);
    assert!(envelope["error"]["suggestion"].is_string() || message == "The tool did not finish in time.");
}

const CPU: &str = "The tool exceeded its limit of 300 ms of CPU time.";
const MEMORY: &str = "The tool exceeded its limit of 16 MB of memory.";

#[tokio::test]
async fn an_infinite_loop() {
    is_stopped("while (true) {}", CPU).await;
    is_stopped("while (true) { try { while (true) {} } catch {} finally { continue } }", CPU).await;
    is_stopped("for (;;) await null", CPU).await;
}

#[tokio::test]
async fn a_memory_bomb() {
    is_stopped("const all = []; while (true) all.push(new Array(1000).fill(all.length))", MEMORY).await;
}

#[tokio::test]
async fn a_string_of_a_gigabyte() {
    is_stopped("return { ok: true, data: 'x'.repeat(1000 * 1000 * 1000) }", MEMORY).await;
    is_stopped("let s = 'x'; while (true) s = s.padEnd(s.length * 2, 'y')", MEMORY).await;
}

#[tokio::test]
async fn a_result_that_is_too_large() {
    let limit =
        "The tool exceeded its limit of 1024 KB for a result or a capability call, or 4096 KB for all.";
    is_stopped("return { ok: true, data: 'x'.repeat(3 * 1024 * 1024) }", limit).await;
}

#[tokio::test]
async fn a_deep_recursion() {
    is_stopped(
        "const f = (n) => 1 + f(n + 1); return { ok: true, data: f(0) }",
        "The tool exceeded its limit of 512 KB of stack.",
    )
    .await;
    let nested = "let x = []; for (let i = 0; i < 100000; i++) x = [x]; return { ok: true, data: x }";
    let envelope = beside_a_good_call(nested).await;
    assert_internal("bad", &envelope);
}

#[tokio::test]
async fn a_promise_that_never_settles() {
    is_stopped("await new Promise(() => {})", "The tool awaits a promise that never settles.").await;
    is_stopped("await new Promise((done) => setTimeout(done, 1e9))", "The tool did not finish in time.")
        .await;
}

#[tokio::test]
async fn a_catastrophic_regular_expression() {
    is_stopped("return { ok: true, data: /^(a+)+$/.test('a'.repeat(60) + 'b') }", CPU).await;
}

#[tokio::test]
async fn a_flood_of_capability_calls() {
    let body = "const all = []; for (let i = 0; i < 1e6; i++) all.push(context.messaging.send({ type: 'x' })); await all";
    is_stopped(body, "The tool exceeded its limit of 64 capability calls at a time, or 1000 in all.").await;
}

#[tokio::test]
async fn an_import_that_escapes() {
    for specifier in [
        "fs",
        "node:fs",
        "../../../etc/passwd",
        "/etc/passwd",
        "https://evil.example/x.js",
        "../good/handler.js",
    ] {
        let text = format!(
            "import * as x from '{specifier}'; export async function execute() {{ return {{ ok: true, data: x }} }}"
        );
        let (runtime, _dir) =
            ToolsetBuilder::new().module("bad", json!({}), &text).tool("good", json!({}), GOOD).runtime();
        assert_internal("bad", &call(&runtime, "bad", json!({})).await);
        let (runtime, _dir) = ToolsetBuilder::new()
            .tool(
                "bad",
                json!({}),
                &format!("const x = await import('{specifier}'); return {{ ok: true, data: x }}"),
            )
            .tool("good", json!({}), GOOD)
            .runtime();
        assert_internal("bad", &call(&runtime, "bad", json!({})).await);
    }
}

#[tokio::test]
async fn only_the_documented_globals_exist() {
    let names = "['fetch', 'process', 'require', 'Deno', 'Bun', 'os', 'std', 'XMLHttpRequest', 'WebSocket', 'Worker', \
        'navigator', 'global', 'module', 'exports', 'print', 'load', 'WebAssembly']";
    let body = format!(
        "let evaluated = 'no'; try {{ evaluated = (0, eval)('1') }} catch {{}}
         let made = 'no'; try {{ made = new (Object.getPrototypeOf(async () => {{}}).constructor)('return 1') }} catch {{}}
         return {{ ok: true, data: {{ names: {names}.filter((name) => name in globalThis), evaluated, made }} }}"
    );
    let (runtime, _dir) = ToolsetBuilder::new().tool("look", json!({}), &body).runtime();
    let envelope = call(&runtime, "look", json!({})).await;
    assert_eq!(envelope["data"], json!({ "names": [], "evaluated": "no", "made": "no" }), "{envelope}");
}

#[tokio::test]
async fn a_call_does_not_see_changes_of_an_earlier_call_to_globals() {
    let module = "let count = 0; const seen = new Set();
        export async function execute({ args, context }) {
            count += 1;
            const before = {
                count, seen: seen.size, global: typeof globalThis.leak, proto: ({}).leak ?? null,
                array: [].leak ?? null, promise: Promise.prototype.leak ?? null, json: JSON.leak ?? null,
                parsed: JSON.parse('1'), mapped: [1].map((x) => x)[0], symbol: Symbol.for('leak').description,
            };
            seen.add(1); globalThis.leak = 1; Object.prototype.leak = 1; Array.prototype.leak = 1;
            Promise.prototype.leak = 1; JSON.leak = 1; JSON.parse = () => 666; Array.prototype.map = () => [666];
            try { Promise.prototype.then = () => { throw 1 } } catch {}
            return { ok: true, data: before };
        }";
    let (runtime, _dir) =
        ToolsetBuilder::new().module("bad", json!({}), module).tool("good", json!({}), GOOD).runtime();
    let first = call(&runtime, "bad", json!({})).await;
    for _ in 0..50 {
        let next = call(&runtime, "bad", json!({})).await;
        assert_eq!(next, first);
        assert_eq!(call(&runtime, "good", json!({ "list": [1, 2, 3] })).await["data"], 6);
    }
}

#[tokio::test]
async fn a_handler_cannot_change_its_context_or_the_callers_arguments() {
    let body = "
        const tries = [];
        const attempt = (name, change) => { try { change(); tries.push([name, 'done']) } catch { tries.push([name, 'refused']) } };
        attempt('mode', () => { context.mode = 'voice' });
        attempt('tool', () => { context.tool.id = 'other' });
        attempt('session', () => { context.session.isActive = false });
        attempt('state', () => { context.session.state.deep.step = 9 });
        attempt('new member', () => { context.more = 1 });
        attempt('delete', () => { delete context.messaging });
        attempt('capability', () => { context.messaging.send = () => {} });
        attempt('signal', () => { context.signal.aborted = true });
        args.list.push(99); args.more = true;
        return { ok: true, data: { tries, mode: context.mode, step: context.session.state.deep.step } }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("bad", json!({}), body).runtime();
    let (list, state) = (json!({ "list": [1] }), json!({ "deep": { "step": 1 } }));
    let orchestrator = orchestrator(&runtime);
    let mut session = NewSession::new("client-1", Mode::Text);
    session.state = state.as_object().unwrap().clone();
    let request = request(&orchestrator, session, "bad", list.clone()).await;
    let data = to_json(&orchestrator.call(request.clone()).await)["data"].clone();
    assert_eq!((&data["mode"], &data["step"]), (&json!("text"), &json!(1)));
    for attempt in data["tries"].as_array().unwrap() {
        assert_eq!(attempt[1], "refused", "{attempt}");
    }
    let SessionRef::Loaded(session) = &request.session else { panic!("{request:?}") };
    assert_eq!((&request.call.args, &session.state), (&list, &state));
}

#[tokio::test]
async fn calls_of_different_sessions_run_concurrently() {
    let body = "await new Promise((done) => setTimeout(done, 20)); return { ok: true, data: args.n }";
    let (runtime, _dir) = ToolsetBuilder::new().tool("wait", json!({}), body).runtime();
    let runtime: Arc<Runtime> = Arc::new(runtime);
    let calls: Vec<_> = (0..200)
        .map(|n| {
            let runtime = Arc::clone(&runtime);
            tokio::spawn(async move { call(&runtime, "wait", json!({ "n": n })).await["data"].clone() })
        })
        .collect();
    for (n, running) in calls.into_iter().enumerate() {
        assert_eq!(running.await.unwrap(), json!(n));
    }
}

#[test]
fn the_reference_tools_are_where_these_tests_look() {
    assert!(reference_tools().join("kb-search/handler.js").exists());
}

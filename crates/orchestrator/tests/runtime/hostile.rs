//! Handlers that mean harm: each gets its envelope, the process lives, and a well-behaved call beside it is unharmed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_orchestrator::{Limits, Runtime};

use crate::support::{Bench, call, internal, reference_tools};

const GOOD: &str = "let n = 0; for (const x of args.list) n += x; await null; return { ok: true, data: n }";

fn limits() -> Limits {
    Limits { cpu: Duration::from_millis(300), memory_bytes: 16 << 20, ..Limits::within(Duration::ZERO) }
}

/// Runs the hostile body while a good tool is called again and again, and returns its envelope.
async fn beside_a_good_call(body: &str) -> Value {
    // Far beyond the processor time, which a busy machine hands out slowly.
    let fields = json!({ "timeoutMs": if body.contains("setTimeout") { 300 } else { 30000 } });
    let (builder, _dir) = Bench::new().tool("bad", fields, body).tool("good", json!({}), GOOD).builder();
    let runtime = Arc::new(builder.limits(limits()).build());
    let hostile = {
        let runtime = Arc::clone(&runtime);
        tokio::spawn(async move { call(&runtime, "bad", json!({})).await })
    };
    let mut good = 0;
    while !hostile.is_finished() || good < 3 {
        let envelope = call(&runtime, "good", json!({ "list": [1, 2, 3] })).await;
        assert_eq!(envelope["data"], 6, "a good call was harmed: {envelope}");
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

const CPU: &str = "The tool used up its processor time.";
const MEMORY: &str = "The tool used up its memory.";

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
    is_stopped("return { ok: true, data: 'x'.repeat(3 * 1024 * 1024) }", "The tool's answer is too large.")
        .await;
}

#[tokio::test]
async fn a_deep_recursion() {
    is_stopped(
        "const f = (n) => 1 + f(n + 1); return { ok: true, data: f(0) }",
        "The tool recursed too deeply.",
    )
    .await;
    let nested = "let x = []; for (let i = 0; i < 100000; i++) x = [x]; return { ok: true, data: x }";
    let envelope = beside_a_good_call(nested).await;
    internal("bad", &envelope);
}

#[tokio::test]
async fn a_promise_that_never_settles() {
    is_stopped("await new Promise(() => {})", "The tool never finishes.").await;
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
    is_stopped(body, "The tool made too many requests.").await;
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
            Bench::new().module("bad", json!({}), &text).tool("good", json!({}), GOOD).runtime();
        internal("bad", &call(&runtime, "bad", json!({})).await);
        let (runtime, _dir) = Bench::new()
            .tool(
                "bad",
                json!({}),
                &format!("const x = await import('{specifier}'); return {{ ok: true, data: x }}"),
            )
            .tool("good", json!({}), GOOD)
            .runtime();
        internal("bad", &call(&runtime, "bad", json!({})).await);
    }
}

#[tokio::test]
async fn nothing_is_there_that_was_not_given() {
    let names = "['fetch', 'process', 'require', 'Deno', 'Bun', 'os', 'std', 'XMLHttpRequest', 'WebSocket', 'Worker', \
        'navigator', 'global', 'module', 'exports', 'print', 'load', 'WebAssembly']";
    let body = format!(
        "let evaluated = 'no'; try {{ evaluated = (0, eval)('1') }} catch {{}}
         let made = 'no'; try {{ made = new (Object.getPrototypeOf(async () => {{}}).constructor)('return 1') }} catch {{}}
         return {{ ok: true, data: {{ names: {names}.filter((name) => name in globalThis), evaluated, made }} }}"
    );
    let (runtime, _dir) = Bench::new().tool("look", json!({}), &body).runtime();
    let envelope = call(&runtime, "look", json!({})).await;
    assert_eq!(envelope["data"], json!({ "names": [], "evaluated": "no", "made": "no" }), "{envelope}");
}

#[tokio::test]
async fn what_one_call_poisons_the_next_does_not_see() {
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
        Bench::new().module("bad", json!({}), module).tool("good", json!({}), GOOD).runtime();
    let first = call(&runtime, "bad", json!({})).await;
    for _ in 0..50 {
        let next = call(&runtime, "bad", json!({})).await;
        assert_eq!(next, first);
        assert_eq!(call(&runtime, "good", json!({ "list": [1, 2, 3] })).await["data"], 6);
    }
}

#[tokio::test]
async fn arguments_and_context_cannot_be_tampered_with_for_others() {
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
    let (runtime, _dir) = Bench::new().tool("bad", json!({}), body).runtime();
    let list = json!({ "list": [1] });
    let mut request = crate::support::request("bad", list.clone());
    let mut session = (*request.session).clone();
    session.state = json!({ "deep": { "step": 1 } });
    request.session = Arc::new(session);
    let data = crate::support::shown(&runtime.execute(request.clone()).await)["data"].clone();
    assert_eq!((&data["mode"], &data["step"]), (&json!("text"), &json!(1)));
    for attempt in data["tries"].as_array().unwrap() {
        assert_eq!(attempt[1], "refused", "{attempt}");
    }
    assert_eq!((&request.args, &request.session.state), (&list, &json!({ "deep": { "step": 1 } })));
}

#[tokio::test]
async fn calls_of_different_sessions_run_at_the_same_time() {
    let body = "await new Promise((done) => setTimeout(done, 20)); return { ok: true, data: args.n }";
    let (runtime, _dir) = Bench::new().tool("wait", json!({}), body).runtime();
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

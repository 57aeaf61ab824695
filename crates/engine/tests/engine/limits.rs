//! Hostile handlers: each limit has its own failure, and other calls are not affected.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::processes::{descendants, memory_kilobytes};
use crate::support::{body_with, call, engine, host, options, program};
use serde_json::json;
use toolwright_engine::{Engine, Failure, Limits, Options};

const TIMES: usize = 20;

/// Runs a hostile body many times, while other calls run concurrently.
pub(crate) async fn hostile(body: &str, limits: impl Fn(&mut Limits), expected: Failure) {
    let engine = Arc::new(engine());
    let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let neighbour = tokio::spawn(neighbours(engine.clone(), stop.clone(), served.clone()));
    let source = format!("export async function execute({{ args, context }}) {{ {body} }}");
    let program = program(&source);
    for round in 0..TIMES / 4 {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let mut one = call(&program, json!({}));
            one.limits.cpu = Duration::from_millis(60);
            limits(&mut one.limits);
            let engine = engine.clone();
            calls.spawn(async move { engine.run(one).await });
        }
        while let Some(result) = calls.join_next().await {
            assert_eq!(result.unwrap(), Err(expected.clone()), "round {round}: {body}");
        }
    }
    stop.store(true, Ordering::SeqCst);
    neighbour.await.unwrap();
    assert!(served.load(Ordering::SeqCst) > 0, "no neighbour was served beside {body}");
}

async fn neighbours(engine: Arc<Engine>, stop: Arc<AtomicBool>, served: Arc<AtomicUsize>) {
    let program = program(
        "export async function execute({ args, context }) { const [n] = await context.echo(args.n); return { n, s: await context.later(1) }; }",
    );
    while !stop.load(Ordering::SeqCst) {
        let n = served.fetch_add(1, Ordering::SeqCst);
        assert_eq!(engine.run(call(&program, json!({ "n": n }))).await, Ok(json!({ "n": n, "s": "later" })));
    }
}

macro_rules! hostile {
    ($($name:ident: $body:expr => $failure:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            hostile($body, |_| {}, $failure).await;
        })*
    };
}

/// With a high CPU limit, so that another limit is reached first.
macro_rules! generous {
    ($($name:ident: $body:expr => $failure:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            let limits = |limits: &mut Limits| {
                limits.cpu = Duration::from_secs(10);
                limits.memory_bytes = 16 << 20;
            };
            hostile($body, limits, $failure).await;
        })*
    };
}

hostile! {
    an_endless_loop_is_stopped: "while (true) {}" => Failure::CpuTime;
    an_endless_loop_that_catches_is_stopped: "while (true) { try { while (true) {} } catch {} finally {} }" => Failure::CpuTime;
    an_endless_loop_in_a_job_is_stopped: "await null; for (;;) {}" => Failure::CpuTime;
    an_endless_loop_behind_a_catch_is_stopped: "const spin = async () => { for (;;) {} }; for (;;) { try { await spin(); } catch {} }" => Failure::CpuTime;
    an_endless_chain_of_jobs_is_stopped: "const again = () => Promise.resolve().then(again); return again();" => Failure::CpuTime;
    an_endless_chain_of_microtasks_is_stopped: "const again = () => queueMicrotask(again); again(); await new Promise(() => {});" => Failure::CpuTime;
    an_endless_loop_in_a_getter_is_stopped: "return { get x() { for (;;) {} } };" => Failure::CpuTime;
    an_endless_loop_in_to_json_is_stopped: "return [{ toJSON() { for (;;) {} } }];" => Failure::CpuTime;
    an_endless_loop_in_a_thrown_getter_is_stopped: "throw { get message() { for (;;) {} } };" => Failure::CpuTime;
    an_endless_loop_in_an_argument_is_stopped: "await context.echo({ toJSON() { for (;;) {} } });" => Failure::CpuTime;
    an_endless_loop_in_a_timer_is_stopped: "setTimeout(() => { for (;;) {} }, 1); await context.later(5000);" => Failure::CpuTime;
    a_catastrophic_regex_is_stopped: "return /^(a+)+$/.test('a'.repeat(40) + 'b');" => Failure::CpuTime;
    a_long_sort_is_stopped: "for (;;) Array.from({ length: 200000 }, (_, i) => i ^ 0x5555).sort();" => Failure::CpuTime;
    a_long_search_in_strings_is_given_up_on: "return ('a'.repeat(1 << 20) + 'c').indexOf('a'.repeat(1 << 10) + 'b');" => Failure::CpuTime;
    // Large numbers again and again: a single one that grows reaches the engine's largest size on a fast machine.
    products_of_big_integers_are_stopped: "for (;;) { let n = 3n; for (let i = 0; i < 19; i += 1) n *= n; }" => Failure::CpuTime;
    too_many_pending_host_calls_are_stopped: "await Promise.allSettled(Array.from({ length: 65 }, () => context.never()));" => Failure::TooManyHostCalls;
    a_promise_that_never_settles_is_told: "return new Promise(() => {});" => Failure::NeverSettles;
}

generous! {
    too_many_host_calls_in_a_row_are_stopped: "for (;;) { try { await context.echo(1); } catch {} }" => Failure::TooManyHostCalls;
    too_many_synchronous_host_calls_are_stopped: "for (;;) { try { context.audit.log('x'); } catch {} }" => Failure::TooManyHostCalls;
    deep_recursion_is_stopped: "const f = () => 1 + f(); return f();" => Failure::Stack;
    deep_recursion_in_to_json_is_stopped: "const f = () => ({ toJSON: () => JSON.stringify(f()) }); return f();" => Failure::Stack;
    deep_recursion_of_host_calls_is_stopped: "const f = () => context.audit.log({ toJSON: f }); f();" => Failure::Stack;
    a_deep_proxy_chain_is_stopped: "let p = {}; for (let i = 0; i < 20000; i += 1) p = new Proxy(p, {}); return p.x;" => Failure::Stack;
    a_memory_bomb_of_arrays_is_stopped: "const all = []; for (;;) all.push(new Array(100000).fill(1));" => Failure::Memory;
    a_memory_bomb_of_objects_is_stopped: "let list = null; for (;;) list = { list };" => Failure::Memory;
    a_memory_bomb_of_strings_is_stopped: "const all = []; for (;;) all.push(`${all.length}`.padEnd(50000));" => Failure::Memory;
    a_memory_bomb_of_buffers_is_stopped: "const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));" => Failure::Memory;
    a_gigabyte_of_string_is_stopped: "return 'a'.repeat(2 ** 28).split('');" => Failure::Memory;
    a_huge_text_is_stopped: "return JSON.stringify(new Array(30000000).fill('abcdefgh'));" => Failure::Memory;
    a_large_result_is_stopped: "return 'x'.repeat(2 << 20);" => Failure::OutputTooLarge;
    a_large_array_is_stopped: "const a = []; a.length = 4294967295; return a;" => Failure::OutputTooLarge;
    a_result_of_many_members_is_stopped: "return Object.fromEntries(Array.from({ length: 20000 }, (_, i) => [`${i}`.padStart(60, 'k'), i]));" => Failure::OutputTooLarge;
}

#[tokio::test]
async fn waiting_beyond_the_deadline_is_stopped() {
    for body in [
        "await context.never();",
        "await context.later(60000);",
        "await new Promise((done) => setTimeout(done, 60000));",
    ] {
        let limits = |limits: &mut Limits| limits.deadline = Instant::now() + Duration::from_millis(40);
        hostile(body, limits, Failure::Deadline).await;
    }
}

#[tokio::test]
async fn computing_beyond_the_deadline_is_stopped() {
    let limits = |limits: &mut Limits| {
        limits.cpu = Duration::from_secs(60);
        limits.deadline = Instant::now() + Duration::from_millis(40);
    };
    hostile("for (;;) {}", limits, Failure::Deadline).await;
}

#[tokio::test]
async fn cpu_time_is_measured_not_guessed() {
    let engine = engine();
    let spin = program("export async function execute() { for (;;) {} }");
    let mut one = call(&spin, json!({}));
    one.limits.cpu = Duration::from_millis(100);
    let began = Instant::now();
    assert_eq!(engine.run(one).await, Err(Failure::CpuTime));
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(100) && took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test]
async fn signals_to_the_whole_server_do_not_end_its_workers() {
    let engine = engine();
    let slow = program("export async function execute({ context }) { return context.later(500); }");
    let running = tokio::spawn({
        let (engine, one) = (engine.clone(), call(&slow, json!({})));
        async move { engine.run(one).await }
    });
    while descendants().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for id in descendants() {
        let id = rustix::process::Pid::from_raw(id as i32).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    }
    assert_eq!(running.await.unwrap(), Ok(json!("later")));
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
}

#[tokio::test]
async fn a_lost_spawner_is_replaced() {
    let engine = engine();
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
    let spawner = rustix::process::Pid::from_raw(descendants()[0] as i32).unwrap();
    rustix::process::kill_process(spawner, rustix::process::Signal::KILL).unwrap();
    let began = Instant::now();
    while body_with(&engine, "return 1;").await != Ok(json!(1)) {
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn two_hundred_waiting_calls_fit_in_400_megabytes() {
    let engine = Arc::new(engine());
    let stubs = Arc::new(host());
    let waiting = program("export async function execute({ context }) { await context.never(); return 1; }");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (engine, mut one) = (engine.clone(), call(&waiting, json!({})));
        one.host = stubs.clone();
        calls.spawn(async move { engine.run(one).await });
    }
    let began = Instant::now();
    while stubs.calls.lock().unwrap().len() < 200 {
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", stubs.calls.lock().unwrap().len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let kilobytes = memory_kilobytes();
    assert!(kilobytes < 400 << 10, "{kilobytes} KB");
}

#[tokio::test]
async fn a_long_turn_does_not_delay_short_ones() {
    let engine = Arc::new(engine());
    let spin = program("export async function execute() { for (;;) {} }");
    let mut long = call(&spin, json!({}));
    long.limits.cpu = Duration::from_secs(3);
    let runner = engine.clone();
    let long = tokio::spawn(async move { runner.run(long).await });
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
    assert!(!long.is_finished(), "the short one waited for the long one");
    long.abort();
}

/// The workers that compute or wait for a processor, and those that wait for something else.
#[cfg(target_os = "linux")]
fn computing_and_waiting() -> (usize, usize) {
    let states: Vec<char> = descendants()
        .into_iter()
        .filter_map(|id| std::fs::read_to_string(format!("/proc/{id}/stat")).ok())
        .filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next())
        .collect();
    let computing = states.iter().filter(|state| **state == 'R').count();
    (computing, states.len() - computing)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn of_many_calls_that_compute_few_do_so_at_a_time() {
    const CALLS: usize = 12;
    let engine = Arc::new(engine());
    let processors = std::thread::available_parallelism().unwrap().get();
    let spin = program("export async function execute() { for (;;) {} }");
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        let mut one = call(&spin, json!({}));
        one.limits.cpu = Duration::from_secs(60);
        let engine = engine.clone();
        calls.spawn(async move { engine.run(one).await });
    }
    let began = Instant::now();
    // Besides those that wait for a slot, the spawner and an unused worker wait.
    while computing_and_waiting().1 < CALLS.saturating_sub(processors) + 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", computing_and_waiting());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..20 {
        assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
    }
    // The slots of calls that were killed are free again.
    calls.shutdown().await;
    let computes = "let n = 0; for (let i = 0; i < 3e6; i += 1) n += i % 7; return n > 0;";
    assert_eq!(body_with(&engine, computes).await, Ok(json!(true)));
}

#[tokio::test]
async fn a_limit_that_the_handler_recovers_from_is_no_failure() {
    let engine = engine();
    let caught = "try { const f = () => 1 + f(); f(); } catch (error) { return error.name; }";
    assert_eq!(body_with(&engine, caught).await, Ok(json!("RangeError")));
    let caught = "try { 'a'.repeat(2 ** 28); } catch (error) { return error.message; }";
    assert_eq!(body_with(&engine, caught).await, Ok(json!("out of memory")));
    assert_eq!(
        body_with(&engine, "try { 'a'.repeat(2 ** 28); } catch {} throw new Error('other');")
            .await
            .unwrap_err()
            .to_string(),
        "the handler threw Error: other"
    );
}

#[tokio::test]
async fn calls_beyond_the_engines_capacity_wait_until_their_deadline() {
    let engine = Engine::new(Options { max_calls: 4, ..options() });
    let slow = program("export async function execute({ context }) { return context.later(1000); }");
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..12 {
        let (engine, mut one) = (engine.clone(), call(&slow, json!({})));
        if n >= 4 {
            one.limits.deadline = Instant::now() + Duration::from_millis(300);
        }
        calls.spawn(async move { engine.run(one).await });
    }
    let results = calls.join_all().await;
    let refused = results.iter().filter(|result| **result == Err(Failure::Overloaded)).count();
    let served = results.iter().filter(|result| **result == Ok(json!("later"))).count();
    assert_eq!((served, refused), (4, 8));
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
}

#[tokio::test]
async fn what_a_handler_passes_to_the_host_is_limited_in_sum() {
    let engine = engine();
    for flood in [
        "for (let i = 0; i < 100; i += 1) await context.echo(text); return 1;",
        "for (let i = 0; i < 100; i += 1) context.audit.log('x', text); return 1;",
        "for (let i = 0; i < 100; i += 1) context.progress({ fraction: 0.5, message: text }); return 1;",
        "for (let i = 0; i < 100; i += 1) await context.messaging.send({ text }); return 1;",
        // Not awaited, and nested as deep as arguments may be.
        "for (let i = 0; i < 60; i += 1) context.messaging.send({ text }).catch(() => {}); return 1;",
        "let args = text; for (let i = 0; i < 50; i += 1) args = { args }; \
         for (let i = 0; i < 100; i += 1) await context.echo('other-tool', args); return 1;",
        "return { data: {}, intents: Array.from({ length: 990 }, (_, i) => \
         ({ type: 'add_to_memory', key: `k${i}`, value: text + i })) };",
    ] {
        let body = format!("const text = 'x'.repeat(1000000); {flood}");
        assert_eq!(body_with(&engine, &body).await, Err(Failure::OutputTooLarge), "{flood}");
    }
    assert_eq!(body_with(&engine, "return 'still here';").await, Ok(json!("still here")));
}

#[tokio::test]
async fn without_a_worker_nothing_runs() {
    let engine = Engine::new(Options { worker: None, ..options() });
    let refused = body_with(&engine, "return 1;").await;
    assert_eq!(refused, Err(Failure::NoWorker("none is configured".to_owned())));
    let engine = Engine::new(Options { worker: Some("/nonexistent/worker".into()), ..options() });
    assert!(matches!(body_with(&engine, "return 1;").await, Err(Failure::NoWorker(_))));
}

#[tokio::test]
async fn recursion_through_native_code_is_limited() {
    let engine = engine();
    let source = "
        const f = (n) => {
          try { return f(n + 1); } catch {
            try { context.audit.log({ toJSON: () => f(n) }); } catch {}
            return n;
          }
        };
        for (;;) f(0);";
    for _ in 0..3 {
        let handler = format!("export async function execute({{ context }}) {{ {source} }}");
        let mut one = call(&program(&handler), json!({}));
        one.limits.cpu = Duration::from_millis(500);
        let result = engine.run(one).await;
        assert!(matches!(result, Err(Failure::CpuTime | Failure::TooManyHostCalls)), "{result:?}");
    }
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
}

const BUSY: &str = "
    import { ToolError } from '../_core/error-types.js';
    export async function execute({ args, context }) {
      const url = new URL('https://example.com/?q=1');
      url.searchParams.append('x', 'ä');
      const all = await Promise.all([context.echo({ a: [1, 2, 3] }), context.later(1), context.echo(url)]);
      const copy = structuredClone({ m: new Map([[1, all]]), d: new Date(0), s: 'x'.repeat(5000) });
      const words = copy.s.replace(/x/g, 'yz').split('z').map((word, index) => ({ word, index }));
      context.audit.log('done', { n: words.length });
      try { JSON.parse('{'); } catch (error) { if (args.fail) throw new ToolError('TRANSIENT', error.message, { details: copy }); }
      return { words: words.length, url, text: new TextDecoder().decode(new TextEncoder().encode('aä')) };
    }";

#[tokio::test]
async fn memory_may_run_out_at_any_point() {
    let engine = engine();
    let busy = program(BUSY);
    let (mut whole, mut short, mut odd) = (0, 0, Vec::new());
    for step in 0..600 {
        let mut one = call(&busy, json!({}));
        one.limits.memory_bytes = 1 + step * 3000;
        match engine.run(one).await {
            Ok(value) => {
                assert_eq!(value["words"], 5001);
                whole += 1;
            }
            Err(Failure::Memory) => short += 1,
            Err(other) => odd.push((step * 3000, other)),
        }
    }
    assert!(whole > 0 && short > 0 && odd.is_empty(), "{whole} {short} {odd:?}");
}

/// The server still sends results of host calls to a worker that has ended by then.
#[tokio::test]
async fn a_failure_that_is_reported_before_host_calls_have_results_is_not_lost() {
    let engine = engine();
    let greedy = program(
        "export async function execute({ context }) {
           for (let i = 0; i < 20; i += 1) context.echo(i);
           for (const all = []; ; ) all.push('x'.repeat(10000) + all.length);
         }",
    );
    for _ in 0..200 {
        let mut one = call(&greedy, json!({}));
        one.limits.memory_bytes = 1 << 20;
        assert_eq!(engine.run(one).await, Err(Failure::Memory));
    }
}

#[tokio::test]
async fn cpu_time_may_run_out_at_any_point() {
    let engine = engine();
    let busy = program(BUSY);
    for step in 0..300 {
        let mut one = call(&busy, json!({}));
        one.limits.cpu = Duration::from_micros(step * 40);
        let result = engine.run(one).await;
        assert!(matches!(result, Ok(_) | Err(Failure::CpuTime)), "{result:?}");
    }
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
}

//! Calls run and wait side by side; cancelled ones stop; dropped calls leave nothing running.

use crate::support;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{body_with, call, engine, host, program};
use serde_json::json;
use toolwright_engine::{Failure, HandlerCall};

#[tokio::test]
async fn five_hundred_calls_wait_at_once() {
    let engine = Arc::new(engine());
    let slow = program(
        "export async function execute({ args, context }) { const r = await context.later(50); return r + args.n; }",
    );
    let began = Instant::now();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..500 {
        let (engine, one) = (engine.clone(), call(&slow, json!({ "n": n })));
        calls.spawn(async move { (n, engine.run(one).await) });
    }
    while let Some(done) = calls.join_next().await {
        let (n, result) = done.unwrap();
        assert_eq!(result, Ok(json!(format!("later{n}"))));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn host_calls_of_one_handler_run_concurrently() {
    let began = Instant::now();
    let source = "const all = await Promise.all(Array.from({ length: 50 }, () => context.later(100))); return all.length;";
    assert_eq!(body_with(&engine(), source).await, Ok(json!(50)));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

fn cancelling(source: &str) -> (HandlerCall, Arc<support::Stubs>) {
    let stubs = Arc::new(host());
    let mut one = call(&program(source), json!({}));
    one.host = stubs.clone();
    (one, stubs)
}

async fn until(condition: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !condition() && began.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    condition()
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_its_signal_fires() {
    let engine = Arc::new(engine());
    let (one, stubs) = cancelling(
        "export async function execute({ context }) {
        context.signal.addEventListener('abort', async () => {
          context.audit.log('aborted', { aborted: context.signal.aborted, reason: context.signal.reason });
          try { await context.echo(1); } catch (error) { context.audit.log(error.code); }
        });
        context.audit.log('waiting', { aborted: context.signal.aborted, reason: context.signal.reason });
        await context.never();
      }",
    );
    let cancel = one.cancel.clone();
    let (runner, calls) = (engine.clone(), stubs.clone());
    let running = tokio::spawn(async move { runner.run(one).await });
    assert!(until(|| calls.calls.lock().unwrap().len() >= 2).await);
    cancel.cancel();
    assert_eq!(running.await.unwrap(), Err(Failure::Cancelled));
    assert!(until(|| calls.calls.lock().unwrap().len() >= 4).await);
    let logged: Vec<_> = stubs
        .calls
        .lock()
        .unwrap()
        .iter()
        .filter(|(path, _)| path == "audit.log")
        .map(|(_, args)| json!(args))
        .collect();
    let expected = vec![
        json!(["waiting", { "aborted": false, "reason": null }]),
        json!(["aborted", { "aborted": true, "reason": "cancelled" }]),
        json!(["CANCELLED"]),
    ];
    assert_eq!(logged, expected);
}

#[tokio::test]
async fn the_signal_fires_at_the_deadline_too() {
    let engine = engine();
    let (mut one, stubs) = cancelling("export async function execute({ context }) {
        context.signal.onabort; context.signal.addEventListener('abort', () => context.audit.log(context.signal.reason));
        await context.never();
      }");
    one.limits.deadline = Instant::now() + Duration::from_millis(50);
    assert_eq!(engine.run(one).await, Err(Failure::Deadline));
    assert!(
        until(|| stubs.calls.lock().unwrap().contains(&("audit.log".to_owned(), vec![json!("deadline")])))
            .await
    );
}

#[tokio::test]
async fn an_abort_listener_has_a_cpu_limit() {
    let engine = Arc::new(engine());
    let (mut one, _) = cancelling(
        "export async function execute({ context }) {
        context.signal.addEventListener('abort', () => { for (;;) {} });
        await context.never();
      }",
    );
    one.limits.deadline = Instant::now() + Duration::from_millis(30);
    assert_eq!(engine.run(one).await, Err(Failure::Deadline));
    let began = Instant::now();
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_computing_call_can_be_cancelled() {
    let engine = Arc::new(engine());
    let (mut one, _) = cancelling("export async function execute() { for (;;) {} }");
    one.limits.cpu = Duration::from_secs(60);
    let cancel = one.cancel.clone();
    let runner = engine.clone();
    let running = tokio::spawn(async move { runner.run(one).await });
    tokio::time::sleep(Duration::from_millis(30)).await;
    cancel.cancel();
    assert_eq!(running.await.unwrap(), Err(Failure::Cancelled));
}

#[tokio::test]
async fn a_call_cancelled_before_it_starts_runs_nothing() {
    let engine = engine();
    let (one, stubs) = cancelling("export async function execute({ context }) { context.audit.log('ran'); }");
    one.cancel.cancel();
    assert_eq!(engine.run(one).await, Err(Failure::Cancelled));
    let (mut late, _) = cancelling("export async function execute() {}");
    late.limits.deadline = Instant::now();
    assert_eq!(engine.run(late).await, Err(Failure::Deadline));
    assert!(stubs.calls.lock().unwrap().is_empty());
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn dropping_a_call_stops_its_host_calls() {
    let engine = engine();
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    let mut one =
        call(&program("export async function execute({ context }) { await context.later(); }"), json!({}));
    let stubs = Arc::new(support::Stubs::default().with("later", move |_| {
        let held = Dropped(flag.clone());
        Box::pin(async move {
            let _held = held;
            std::future::pending().await
        })
    }));
    one.host = stubs.clone();
    let outcome = tokio::time::timeout(Duration::from_millis(100), engine.run(one)).await;
    assert!(outcome.is_err());
    assert!(until(|| dropped.load(Ordering::SeqCst)).await);
}

#[tokio::test]
async fn host_calls_that_are_not_awaited_end_with_the_call() {
    let engine = engine();
    let (started, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let flags = (started.clone(), dropped.clone());
    let source = "export async function execute({ context }) { context.later(); setTimeout(() => console.log('late'), 60000); return 'done'; }";
    let mut one = call(&program(source), json!({}));
    one.host = Arc::new(support::Stubs::default().with("later", move |_| {
        let (started, held) = (flags.0.clone(), Dropped(flags.1.clone()));
        Box::pin(async move {
            let _held = held;
            started.store(true, Ordering::SeqCst);
            std::future::pending().await
        })
    }));
    assert_eq!(engine.run(one).await, Ok(json!("done")));
    assert!(started.load(Ordering::SeqCst) && dropped.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_mixed_calls_get_their_own_results() {
    let engine = Arc::new(engine());
    let mixed = program(
        "export async function execute({ args, context }) {
        let sum = 0;
        for (let i = 0; i < 200; i += 1) sum += i;
        const [back] = await context.echo({ n: args.n });
        await context.later(args.n % 7);
        if (args.n % 5 === 0) throw new Error(String(args.n));
        return [back.n, sum];
      }",
    );
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..300 {
        let (engine, one) = (engine.clone(), call(&mixed, json!({ "n": n })));
        calls.spawn(async move { (n, engine.run(one).await) });
    }
    while let Some(done) = calls.join_next().await {
        match done.unwrap() {
            (n, Ok(value)) => assert_eq!(value, json!([n, 19900])),
            (n, Err(Failure::Thrown { message, .. })) => assert_eq!((message, n % 5), (n.to_string(), 0)),
            (n, other) => panic!("{n}: {other:?}"),
        }
    }
}

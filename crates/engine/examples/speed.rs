//! The cost of a call: reference handlers with a stubbed host, sequentially and many at a time.
//! usage: speed [TOOLS_DIR]

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#[allow(dead_code, reason = "shared with the runtime benchmark")]
#[path = "../../../benches/runtime/clock.rs"]
mod clock;

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use clock::micros;
use serde_json::{Value, json};
use toolwright_engine::{
    Cancel, Engine, Failure, HandlerCall, Host, HostError, HostFunction, HostFuture, Level, Limits, Options,
    Program, Source,
};

const TRIVIAL: &str = "export async function execute({ args }) { return { ok: true, data: args }; }";

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Stub {
    found: Value,
}

impl Host for Stub {
    fn call(&self, path: &str, _args: Vec<Value>) -> HostFuture {
        let answer = if path == "kb.search" { self.found.clone() } else { Value::Null };
        Box::pin(async move { Ok(answer) })
    }

    fn call_sync(&self, _path: &str, _args: Vec<Value>) -> Result<Value, HostError> {
        Ok(Value::Null)
    }

    fn console(&self, _level: Level, _text: String) {}
}

fn capabilities() -> Vec<HostFunction> {
    let asynchronous = [
        "messaging.send",
        "voice.endSession",
        "audio.suppress",
        "kb.search",
        "kb.get",
        "calendar.freeBusy",
        "calendar.propose",
        "calendar.getDraft",
        "calendar.commit",
        "images.draft",
        "images.generate",
        "text.extractContacts",
        "text.formatDatetime",
        "text.validateEmail",
        "http.fetch",
        "callTool",
    ];
    let synchronous = ["voice.isActive", "audit.log", "progress"];
    let asynchronous = asynchronous.into_iter().map(HostFunction::asynchronous);
    asynchronous.chain(synchronous.into_iter().map(HostFunction::synchronous)).collect()
}

fn call(program: &Arc<Program>, args: &Value, host: &Arc<Stub>) -> HandlerCall {
    HandlerCall {
        program: program.clone(),
        args: args.clone(),
        context: json!({
            "clientId": "client", "mode": "voice", "executionId": "exec_1",
            "tool": { "id": "tool", "version": "1.0.0", "idempotent": true },
            "session": { "isActive": true, "toolsVersion": "1", "mode": "voice", "state": {} }
        }),
        host: host.clone(),
        limits: Limits::within(Duration::from_secs(10)),
        cancel: Cancel::new(),
        now: None,
        seed: None,
    }
}

fn main() {
    toolwright_engine::run_if_worker();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(measure());
}

async fn measure() {
    let tools = std::env::args().nth(1).unwrap_or_else(|| "tools".to_owned());
    let record = json!({ "id": "doc:a", "type": "doc", "title": "A title", "snippet": "A passage around the match", "score": 0.9, "sourceType": "crm", "lastUpdated": "2026-01-01T00:00:00Z", "url": "https://studio.example/a", "metadata": { "pages": 3 } });
    let host = Arc::new(Stub { found: Value::Array(vec![record; 5]) });
    let cases = [
        ("trivial", json!({ "duration_seconds": 60, "farewell_message": "Bye." })),
        ("ignore-user", json!({ "duration_seconds": 60, "farewell_message": "Bye." })),
        (
            "kb-search",
            json!({ "query": "light", "namespace": "studio", "top_k": 5, "include_snippets": true }),
        ),
    ];
    let worker = Some(std::env::current_exe().unwrap());
    bare_round_trips();
    let engine = Engine::new(Options { worker, functions: capabilities(), ..Options::default() });
    for (tool, args) in cases {
        let text = match tool {
            "trivial" => TRIVIAL.to_owned(),
            tool => fs::read_to_string(format!("{tools}/{tool}/handler.js")).unwrap(),
        };
        let source = Source { path: "handler.js".to_owned(), text };
        let program = Arc::new(Program::new(tool.to_owned(), vec![source]));
        let first = Instant::now();
        engine.run(call(&program, &args, &host)).await.unwrap();
        println!("{tool}: first call in {:.0} µs", micros(first.elapsed()));
        one_after_the_other(&engine, &program, &args, &host, Duration::ZERO).await;
        one_after_the_other(&engine, &program, &args, &host, Duration::from_millis(2)).await;
        saturated(&engine, &program, &args, &host).await;
    }
    stops(&engine, &host).await;
}

/// The floor of every call: a message to another process and back, 2 ms apart as calls of an agent are.
fn bare_round_trips() {
    let mut echo = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (echo.stdin.take().unwrap(), echo.stdout.take().unwrap());
    let mut message = [b'x'; 500];
    let mut latencies: Vec<Duration> = (0..500)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            let started = Instant::now();
            to.write_all(&message).unwrap();
            from.read_exact(&mut message).unwrap();
            started.elapsed()
        })
        .collect();
    drop(to);
    echo.wait().unwrap();
    latencies.sort_unstable();
    println!(
        "500 bytes to another process and back, 2 ms apart: p50 {:.0}, p90 {:.0} µs",
        micros(latencies[250]),
        micros(latencies[450])
    );
}

async fn one_after_the_other(
    engine: &Engine,
    program: &Arc<Program>,
    args: &Value,
    host: &Arc<Stub>,
    pause: Duration,
) {
    let count = if pause.is_zero() { 3000 } else { 500 };
    let mut latencies = Vec::with_capacity(count);
    let began = clock::cpu();
    for _ in 0..count {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        let one = call(program, args, host);
        let started = Instant::now();
        let result = engine.run(one).await.unwrap();
        latencies.push(started.elapsed());
        assert_eq!(result["ok"], true);
    }
    let used = micros(clock::cpu().saturating_sub(began)) / count as f64;
    latencies.sort_unstable();
    let at = |share: f64| micros(latencies[(count as f64 * share) as usize]);
    let kind = if pause.is_zero() { "back to back" } else { "2 ms apart" };
    println!(
        "  {kind}: {used:.0} µs CPU, latency p50 {:.0}, p90 {:.0}, p99 {:.0} µs",
        at(0.5),
        at(0.9),
        at(0.99)
    );
}

async fn saturated(engine: &Engine, program: &Arc<Program>, args: &Value, host: &Arc<Stub>) {
    let (lanes, count) = (16, 500);
    let (began, started) = (clock::cpu(), Instant::now());
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..lanes {
        let (engine, program, args, host) = (engine.clone(), program.clone(), args.clone(), host.clone());
        running.spawn(async move {
            for _ in 0..count {
                engine.run(call(&program, &args, &host)).await.unwrap();
            }
        });
    }
    running.join_all().await;
    let total = f64::from(lanes * count);
    println!(
        "  {lanes} at a time: {:.0} µs CPU a call, {:.0} calls/s",
        micros(clock::cpu().saturating_sub(began)) / total,
        total / started.elapsed().as_secs_f64()
    );
}

/// How long after its CPU limit a hostile handler is stopped.
async fn stops(engine: &Engine, host: &Arc<Stub>) {
    let budget = Duration::from_millis(100);
    for (name, body) in [
        ("endless loop", "for (;;) {}"),
        ("catastrophic regex", "/^(a+)+$/.test('a'.repeat(40) + 'b')"),
        (
            "default sort of strings",
            "for (;;) Array.from({ length: 200000 }, (_, i) => 'k' + (i ^ 0x5555)).sort()",
        ),
        ("quadratic indexOf", "('a'.repeat(1 << 21) + 'c').indexOf('a'.repeat(1 << 12) + 'b')"),
        ("squaring a BigInt", "let n = 3n; for (;;) n *= n"),
        ("joining", "for (;;) new Array(1e6).fill('abc').join()"),
    ] {
        let source = format!("export async function execute() {{ {body}; }}");
        let source = Source { path: "handler.js".to_owned(), text: source };
        let program = Arc::new(Program::new(name.to_owned(), vec![source]));
        let mut one = call(&program, &json!({}), host);
        one.limits.cpu = budget;
        let started = Instant::now();
        let result = engine.run(one).await;
        let late = started.elapsed().saturating_sub(budget);
        println!(
            "{name}: {} {:.0} ms after its budget",
            if result == Err(Failure::CpuTime) { "CpuTime" } else { "other" },
            late.as_secs_f64() * 1e3
        );
    }
}

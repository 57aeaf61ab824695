//! Calls: latency of sequential calls, CPU time, calls per second, and scaling with cores.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::json;
use toolwright::orchestrator::Orchestrator;

use crate::case::{Case, Tools};
use crate::report::{Column, Goal, Row, Sample, Section};
use crate::{Options, Result, clock};

const COLUMNS: &[Column] = &[
    Column { key: "p50_us", title: "p50", unit: "µs", digits: 1 },
    Column { key: "p90_us", title: "p90", unit: "µs", digits: 1 },
    Column { key: "p99_us", title: "p99", unit: "µs", digits: 1 },
    Column { key: "cpu_us", title: "CPU a call", unit: "µs", digits: 1 },
    Column { key: "rate_1", title: "1 caller", unit: "/s", digits: 0 },
    Column { key: "rate_2", title: "2 callers", unit: "/s", digits: 0 },
    Column { key: "rate_16", title: "16 callers", unit: "/s", digits: 0 },
    Column { key: "cpu_16_us", title: "CPU, 16", unit: "µs", digits: 1 },
    Column { key: "cores_2_to_1", title: "cores 2:1", unit: "x", digits: 2 },
];

const GOALS: &[Goal] = &[
    Goal { row: "trivial handler.js", key: "p50_us", most: 80.0 },
    Goal { row: "kb_search, 5 records", key: "p50_us", most: 200.0 },
    Goal { row: "native no-op", key: "p50_us", most: 2.0 },
    Goal { row: "trivial handler.js", key: "cpu_us", most: 300.0 },
    Goal { row: "kb_search, 5 records", key: "cpu_us", most: 450.0 },
    Goal { row: "ignore_user", key: "cpu_us", most: 450.0 },
];

/// Concurrent callers that keep every thread of a small machine busy.
const CALLERS: usize = 16;

struct Rate {
    calls_a_second: f64,
    cpu_us: f64,
}

pub fn run(options: &Options) -> Result<Section> {
    let tools = Arc::new(Tools::load()?);
    let cases: Vec<Arc<Case>> = Case::all().into_iter().map(Arc::new).collect();
    let mut rows: Vec<Row> = cases.iter().map(|case| Row::new(case.name)).collect();
    for round in 0..options.rounds {
        for step in 0..cases.len() {
            let at = (step + round) % cases.len();
            let sample = measure(&tools, &cases[at], options.time)?;
            let p50 = sample.get("p50_us").and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN);
            eprintln!("round {} {:<30} {p50:>8.1} µs p50", round + 1, cases[at].name);
            rows[at].samples.push(sample);
        }
    }
    Ok(Section { name: "calls", rounds: options.rounds, columns: COLUMNS, rows, goals: GOALS })
}

fn measure(tools: &Arc<Tools>, case: &Arc<Case>, time: Duration) -> Result<Sample> {
    let mut sample = Sample::new();
    let orchestrator = tools.orchestrator()?;
    latency(&orchestrator, case, time / 4)?;
    sample.append(&mut latency(&orchestrator, case, time)?);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for callers in [1, 2, CALLERS] {
        let rate = throughput(&orchestrator, case, cores, callers, time)?;
        sample.insert(format!("rate_{callers}"), json!(rate.calls_a_second));
        sample.insert(format!("cpu_{callers}_us"), json!(rate.cpu_us));
    }
    drop(orchestrator);
    if let (Some(one), Some(two)) = (on_cores(tools, case, 1, time)?, on_cores(tools, case, 2, time)?) {
        sample.insert("cores_2_to_1".to_owned(), json!(two.calls_a_second / one.calls_a_second));
    }
    Ok(sample)
}

/// One caller with sequential calls; the CPU time is that of this process and of its workers.
fn latency(orchestrator: &Orchestrator, case: &Case, time: Duration) -> Result<Sample> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut taken: Vec<Duration> = Vec::new();
    let (until, before) = (Instant::now() + time, clock::cpu());
    tokio.block_on(async {
        while taken.is_empty() || Instant::now() < until {
            let request = case.request();
            let started = Instant::now();
            case.call(orchestrator, request).await?;
            taken.push(started.elapsed());
        }
        Result::Ok(())
    })?;
    let cpu = clock::cpu().saturating_sub(before);
    taken.sort_unstable();
    let mut sample = Sample::new();
    for percent in [50, 90, 99] {
        let at = taken.len() * percent / 100;
        sample.insert(format!("p{percent}_us"), json!(taken.get(at).copied().map(clock::micros)));
    }
    sample.insert("cpu_us".to_owned(), json!(clock::micros(cpu) / taken.len() as f64));
    Ok(sample)
}

/// Concurrent callers on a server's threads, each with sequential calls.
fn throughput(
    orchestrator: &Orchestrator,
    case: &Arc<Case>,
    workers: usize,
    callers: usize,
    time: Duration,
) -> Result<Rate> {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
    tokio.block_on(async {
        call_concurrently(orchestrator, case, callers, time / 4).await?;
        let (started, before) = (Instant::now(), clock::cpu());
        let calls = call_concurrently(orchestrator, case, callers, time).await? as f64;
        let (wall, cpu) = (started.elapsed(), clock::cpu().saturating_sub(before));
        Ok(Rate { calls_a_second: calls / wall.as_secs_f64(), cpu_us: clock::micros(cpu) / calls })
    })
}

async fn call_concurrently(
    orchestrator: &Orchestrator,
    case: &Arc<Case>,
    callers: usize,
    time: Duration,
) -> Result<u64> {
    let until = Instant::now() + time;
    let caller = |_| {
        let (orchestrator, case) = (orchestrator.clone(), Arc::clone(case));
        tokio::spawn(async move {
            let mut calls = 0_u64;
            while Instant::now() < until {
                case.call(&orchestrator, case.request()).await?;
                calls += 1;
            }
            Result::Ok(calls)
        })
    };
    let callers: Vec<_> = (0..callers).map(caller).collect();
    let mut calls = 0;
    for caller in callers {
        calls += caller.await??;
    }
    Ok(calls)
}

/// Pins all threads and workers to this many cores. `None` on a machine that has fewer.
fn on_cores(tools: &Arc<Tools>, case: &Arc<Case>, cores: usize, time: Duration) -> Result<Option<Rate>> {
    let (tools, case) = (Arc::clone(tools), Arc::clone(case));
    let pinned = std::thread::spawn(move || {
        let (allowed, mut chosen) = (sched_getaffinity(None)?, CpuSet::new());
        let mut free = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        for _ in 0..cores {
            let Some(core) = free.next() else { return Ok(None) };
            chosen.set(core);
        }
        // Threads and processes inherit the affinity.
        sched_setaffinity(None, &chosen)?;
        let orchestrator = tools.orchestrator()?;
        throughput(&orchestrator, &case, cores, CALLERS, time).map(Some)
    });
    pinned.join().map_err(|_| "the pinned thread panicked")?
}

//! Handlers that misbehave in native code, which neither polls nor allocates, or allocates beside the realm's memory.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_engine::{Failure, Limits};

use crate::limits::hostile;
use crate::processes::{descendants, memory_kilobytes};
use crate::support::{body_with, call, engine, program};

const CPU_LIMIT: Duration = Duration::from_millis(50);
/// The unit of CPU times in `/proc`.
const TICK: Duration = Duration::from_millis(10);
/// How much later than its limit native code is ended at most.
const MAX_OVERRUN: Duration = Duration::from_millis(100);

const SEARCHES: [&str; 2] = [
    "return 'a'.repeat(3e7).indexOf('a'.repeat(1.5e7) + 'b');",
    "return ('a'.repeat(1 << 20) + 'c').includes('a'.repeat(1 << 10) + 'b');",
];
const UNMETERED: &str =
    "return new URLSearchParams(Array(100000).fill(['a', 'x'.repeat(1 << 20)])).toString();";

/// Memory needs a high CPU limit, so that it is reached first.
fn limit(limits: &mut Limits, expected: &Failure) {
    limits.cpu = if *expected == Failure::Memory { Duration::from_secs(15) } else { CPU_LIMIT };
}

fn all() -> impl Iterator<Item = (&'static str, Failure)> {
    SEARCHES.map(|body| (body, Failure::CpuTime)).into_iter().chain([(UNMETERED, Failure::Memory)])
}

/// The CPU time of the workers that have ended, as the kernel has added it up for their spawner.
fn cpu_of_ended_workers(spawner: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{spawner}/stat")).unwrap();
    // The fields 16 and 17 of the line; the name, field 2, may contain spaces.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = fields.split(' ').skip(13).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    TICK * u32::try_from(ticks).unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Real time says nothing on a busy machine: the worker's own CPU time is what its limit is about.
#[tokio::test]
async fn native_code_is_ended_soon_after_its_limit_and_leaves_no_process() {
    let engine = engine();
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
    let spawner = descendants()[0];
    for body in SEARCHES {
        let native = program(&format!("export async function execute() {{ {body} }}"));
        for _ in 0..4 {
            let before = cpu_of_ended_workers(spawner);
            let mut one = call(&native, json!({}));
            one.limits.cpu = CPU_LIMIT;
            assert_eq!(engine.run(one).await, Err(Failure::CpuTime), "{body}");
            until("the worker is reaped", || cpu_of_ended_workers(spawner) >= before + CPU_LIMIT).await;
            let used = cpu_of_ended_workers(spawner) - before;
            assert!(used <= CPU_LIMIT + MAX_OVERRUN, "{body}: {used:?}");
        }
        assert_eq!(body_with(&engine, "return 'still here';").await, Ok(json!("still here")));
    }
    drop(engine);
    until("no process is left", || descendants().is_empty()).await;
}

#[tokio::test]
async fn native_code_at_its_limit_harms_no_neighbour() {
    for (body, expected) in all() {
        hostile(body, |limits| limit(limits, &expected), expected.clone()).await;
    }
}

#[tokio::test]
async fn the_memory_of_native_code_comes_back() {
    const NOISE_KILOBYTES: u64 = 16 << 10;
    let engine = engine();
    assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
    let processes = descendants().len();
    let before = memory_kilobytes();
    for (body, expected) in all() {
        let native = program(&format!("export async function execute() {{ {body} }}"));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (engine, mut one) = (engine.clone(), call(&native, json!({})));
            limit(&mut one.limits, &expected);
            calls.spawn(async move { engine.run(one).await });
        }
        for result in calls.join_all().await {
            assert_eq!(result, Err(expected.clone()), "{body}");
        }
        assert_eq!(body_with(&engine, "return 1;").await, Ok(json!(1)));
        until("the workers are reaped", || descendants().len() <= processes + 4).await;
    }
    until("the memory is back", || memory_kilobytes() <= before + NOISE_KILOBYTES).await;
}

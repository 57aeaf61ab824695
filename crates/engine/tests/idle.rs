//! An idle engine uses no CPU. It has its own test binary, because it measures the whole process.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::panic)]
mod support;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use support::{call, engine, program};

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[tokio::test]
async fn an_idle_engine_uses_no_cpu() {
    let engine = engine();
    let handler = program("export async function execute({ args }) { return args; }");
    for n in 0..200 {
        assert_eq!(engine.run(call(&handler, json!(n))).await, Ok(json!(n)));
    }
    // Until the watcher sleeps and the spare realms are created.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let before = cpu();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let used = cpu() - before;
    assert!(used < Duration::from_millis(50), "{used:?}");
}

//! The confinement of a running worker, as the kernel shows it to others.

use std::{
    collections::BTreeSet,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::processes::{descendants, status_field};
use crate::support::{call, engine, host, program};

/// The spawner's workers: one that runs a call, and the spare one. Both are confined.
async fn workers_of_a_running_call() -> Vec<u32> {
    let (engine, stubs) = (engine(), Arc::new(host()));
    let waiting = program("export async function execute({ context }) { await context.never(); }");
    let mut one = call(&waiting, json!({}));
    one.host = stubs.clone();
    tokio::spawn(async move { engine.run(one).await });
    let began = Instant::now();
    loop {
        let workers: Vec<u32> = descendants().into_iter().skip(1).collect();
        let confined = workers.iter().all(|id| status_field(*id, "Seccomp").as_deref() == Some("2"));
        if !stubs.calls.lock().unwrap().is_empty() && workers.len() == 2 && confined {
            return workers;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{workers:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_worker_has_one_socket_no_environment_and_no_way_to_more() {
    for id in workers_of_a_running_call().await {
        let status = |name| status_field(id, name).unwrap();
        assert_eq!([status("NoNewPrivs"), status("Seccomp"), status("Threads")], ["1", "2", "1"]);
        assert_eq!(descriptors(id), ["/dev/null", "/dev/null", "/dev/null", "/memfd:cpu-slots", "socket"]);
        // Two settings of the allocator; `TZ` if the server has it.
        let expected = ["MIMALLOC_ARENA_RESERVE", "MIMALLOC_PURGE_DELAY"].into_iter();
        let expected = expected.chain(std::env::var_os("TZ").map(|_| "TZ"));
        let environment = fs::read_to_string(format!("/proc/{id}/environ")).unwrap();
        let names = environment.split_terminator('\0').map(|entry| entry.split('=').next().unwrap());
        assert_eq!(names.collect::<BTreeSet<_>>(), expected.collect());
        assert_eq!(fs::read_link(format!("/proc/{id}/cwd")).unwrap().to_str(), Some("/"));
        for (name, limit) in [
            ("Max core file size", "0"),
            ("Max file size", "0"),
            ("Max processes", "0"),
            ("Max open files", "1"),
        ] {
            assert_eq!(limits(id, name), [limit, limit], "{name}");
        }
    }
}

#[tokio::test]
async fn the_kernel_limits_the_memory_and_the_processor_time_of_a_call() {
    let limited: Vec<bool> = workers_of_a_running_call()
        .await
        .into_iter()
        .map(|id| ["Max data size", "Max cpu time"].map(|name| limits(id, name)[0] != "unlimited"))
        .map(|[data, cpu]| {
            assert_eq!(data, cpu);
            data
        })
        .collect();
    // The spare worker has no call yet.
    assert_eq!(limited.iter().filter(|limited| **limited).count(), 1, "{limited:?}");
}

/// What the descriptors of a process refer to, without the numbers of sockets.
fn descriptors(process: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let mut targets: Vec<String> = entries
        .map(|entry| fs::read_link(entry.unwrap().path()).unwrap().display().to_string())
        .map(|target| if target.starts_with("socket:") { "socket".to_owned() } else { target })
        .map(|target| target.trim_end_matches(" (deleted)").to_owned())
        .collect();
    targets.sort();
    targets
}

/// The soft and the hard limit of a process.
fn limits(process: u32, name: &str) -> [String; 2] {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let mut values = line.split_whitespace().map(str::to_owned);
    [values.next().unwrap(), values.next().unwrap()]
}

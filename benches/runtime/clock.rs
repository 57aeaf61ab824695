//! The wall time, CPU time and memory of a process so far.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process, its spawner and the workers, ended ones included: user and system, all threads.
pub fn cpu() -> Duration {
    let ids = fs::read_dir("/proc").into_iter().flatten();
    let ids = ids.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let processes: Vec<(u32, u32, u64)> = ids.filter_map(|id| process(&id)).collect();
    let mut own = vec![std::process::id()];
    for _ in 0..2 {
        let children = processes.iter().filter(|(_, parent, _)| own.contains(parent)).map(|(id, ..)| *id);
        let children: Vec<u32> = children.filter(|id| !own.contains(id)).collect();
        own.extend(children);
    }
    let used = processes.iter().filter(|(id, ..)| own.contains(id)).map(|(.., used)| *used);
    Duration::from_nanos(used.sum())
}

/// A process's id, its parent and its CPU time in nanoseconds.
fn process(id: &str) -> Option<(u32, u32, u64)> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
    let tasks = fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let used = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Some((id.parse().ok()?, parent, used.sum::<u64>() + of_ended_children(id)?))
}

/// The CPU time of a process's children that have ended, in nanoseconds, counted by the kernel in hundredths of a
/// second.
fn of_ended_children(id: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field, the name, ends with a bracket; the times are the 16th and 17th.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13).take(2);
    Some(fields.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * 10_000_000)
}

/// The same clock in all processes of the machine.
pub fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A field of `/proc/self/status` in megabytes: `VmRSS` or `VmHWM`.
pub fn memory_mb(field: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1024.0
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

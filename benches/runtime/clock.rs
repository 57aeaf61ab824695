//! The wall time, CPU time and memory of a process so far.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process since its start: user and system, all threads.
pub fn cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// The same clock in all processes of the machine.
pub fn monotonic() -> Duration {
    read(ClockId::Monotonic)
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

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

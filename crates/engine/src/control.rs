//! One call's stop flag and CPU clock, shared by the thread that runs it, the watcher and the caller.

#![expect(clippy::disallowed_methods, reason = "the origin of `performance.now()`")]
use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

use crate::{call::Limits, failure::Failure};

/// The CPU time for abort listeners, which run after the caller has its result.
const ABORT_LISTENER_CPU: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stop {
    CpuTime = 1,
    Deadline,
    Cancelled,
    TooManyHostCalls,
}

impl Stop {
    pub fn failure(self) -> Failure {
        match self {
            Self::CpuTime => Failure::CpuTime,
            Self::Deadline => Failure::Deadline,
            Self::Cancelled => Failure::Cancelled,
            Self::TooManyHostCalls => Failure::TooManyHostCalls,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Control {
    stop: AtomicU8,
    abort_listeners: AtomicBool,
    pub cpu_limit: u64,
    pub deadline: Instant,
    began: Instant,
    /// Nanoseconds used in earlier turns.
    pub used: AtomicU64,
    turn_began: AtomicU64,
    stack_base: AtomicUsize,
    interrupted: AtomicBool,
}

impl Control {
    pub fn new(limits: &Limits) -> Self {
        Self {
            stop: AtomicU8::new(0),
            abort_listeners: AtomicBool::new(false),
            cpu_limit: nanoseconds(limits.cpu),
            deadline: limits.deadline,
            began: Instant::now(),
            used: AtomicU64::new(0),
            turn_began: AtomicU64::new(0),
            stack_base: AtomicUsize::new(0),
            interrupted: AtomicBool::new(false),
        }
    }

    /// The time since the call arrived.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// The time at which the call arrived, in milliseconds since 1970.
    pub fn origin(&self) -> f64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(self.elapsed()).as_secs_f64() * 1e3
    }

    /// Requests a stop. The first reason is the one that is reported.
    pub fn request_stop(&self, stop: Stop) {
        let _ = self.stop.compare_exchange(0, stop as u8, Ordering::AcqRel, Ordering::Acquire);
    }

    pub fn stopped(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Stop::CpuTime),
            2 => Some(Stop::Deadline),
            3 => Some(Stop::Cancelled),
            _ => Some(Stop::TooManyHostCalls),
        }
    }

    /// Records the CPU time and the position on the native stack, from which the stack depth is measured.
    pub fn begin_turn(&self) {
        let here = 0_u8;
        self.stack_base.store(std::ptr::from_ref(&here).addr(), Ordering::Release);
        self.turn_began.store(thread_cpu(), Ordering::Release);
    }

    pub fn end_turn(&self) {
        self.used.fetch_add(self.turn_used(), Ordering::AcqRel);
    }

    /// Whether the native stack is too deep. QuickJS checks its own depth, but rquickjs resets the base of that check
    /// each time Rust calls back into JavaScript.
    pub fn is_too_deep(&self, bytes: usize) -> bool {
        let here = 0_u8;
        let base = self.stack_base.load(Ordering::Acquire);
        base.saturating_sub(std::ptr::from_ref(&here).addr()) > bytes
    }

    /// Whether the stop interrupted running code.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Acquire)
    }

    /// From now on only abort listeners run, with their own CPU limit.
    pub fn begin_abort_listeners(&self) {
        self.abort_listeners.store(true, Ordering::Release);
    }

    pub fn runs_abort_listeners(&self) -> bool {
        self.abort_listeners.load(Ordering::Acquire)
    }

    /// Called by the interpreter every few thousand steps, on the thread that runs the call.
    pub fn must_stop(&self) -> bool {
        if self.runs_abort_listeners() {
            return self.turn_used() > nanoseconds(ABORT_LISTENER_CPU);
        }
        let stop = self.exceeds_limit();
        if stop {
            self.interrupted.store(true, Ordering::Release);
        }
        stop
    }

    fn exceeds_limit(&self) -> bool {
        if self.stopped().is_some() {
            return true;
        }
        if self.used.load(Ordering::Acquire) + self.turn_used() > self.cpu_limit {
            self.request_stop(Stop::CpuTime);
            return true;
        }
        if Instant::now() >= self.deadline {
            self.request_stop(Stop::Deadline);
            return true;
        }
        false
    }

    /// The CPU time of this turn when the thread's CPU clock is at `now`.
    pub fn used_until(&self, now: u64) -> u64 {
        now.saturating_sub(self.turn_began.load(Ordering::Acquire))
    }

    fn turn_used(&self) -> u64 {
        self.used_until(thread_cpu())
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

//! The clocks of one call: CPU time, real time, and the depth of the native stack.

#![expect(clippy::disallowed_methods, reason = "the origin of `performance.now()`")]
use std::{
    cell::Cell,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

/// Checked by the interpreter every few thousand steps. Shared with the realm's interrupt handler.
pub(crate) struct CpuClock {
    /// The process's CPU time at which the call is stopped.
    limit: Cell<Duration>,
    exceeded: Cell<bool>,
    began: Cell<Instant>,
    stack_base: Cell<usize>,
}

impl CpuClock {
    pub fn new() -> Self {
        Self {
            limit: Cell::new(Duration::MAX),
            exceeded: Cell::new(false),
            began: Cell::new(Instant::now()),
            stack_base: Cell::new(0),
        }
    }

    /// Starts a call, or its abort listeners, with that much CPU time.
    pub fn start(&self, cpu: Duration) {
        self.limit.set(process_cpu().saturating_add(cpu));
        self.exceeded.set(false);
        self.began.set(Instant::now());
        let here = 0_u8;
        self.stack_base.set(std::ptr::from_ref(&here).addr());
    }

    pub fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    /// Whether the call must be stopped now.
    pub fn must_stop(&self) -> bool {
        if process_cpu() > self.limit.get() {
            self.exceeded.set(true);
        }
        self.exceeded.get()
    }

    /// The time since the start of the call.
    pub fn elapsed(&self) -> Duration {
        self.began.get().elapsed()
    }

    /// The time at which the call began, in milliseconds since 1970.
    pub fn origin(&self) -> f64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(self.elapsed()).as_secs_f64() * 1e3
    }

    /// Whether the native stack is too deep. QuickJS checks its own depth, but rquickjs resets the base of that check
    /// each time Rust calls back into JavaScript.
    pub fn is_too_deep(&self, bytes: usize) -> bool {
        let here = 0_u8;
        self.stack_base.get().saturating_sub(std::ptr::from_ref(&here).addr()) > bytes
    }
}

pub(crate) fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

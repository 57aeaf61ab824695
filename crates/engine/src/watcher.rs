//! Watches for long turns. The interpreter checks its limits itself; the watcher stops native loops that do not, and
//! replaces workers in long turns so that short ones need not wait.
use std::{
    fs,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    control::Stop,
    pool::Shared,
    worker::{CurrentTurn, WorkerSlot},
};

const TICK: Duration = Duration::from_millis(5);
/// A worker in a turn of this length is replaced.
const LONG_TURN: Duration = Duration::from_millis(15);
/// When a limit is exceeded by this much, allocations fail, which ends native loops.
const SHUTOFF_DELAY: Duration = Duration::from_millis(30);
/// After this many idle checks, the watcher sleeps until the next turn.
const IDLE_TICKS: u32 = 13;

/// Wakes the watcher when turns start. It sleeps while nothing runs.
#[derive(Default)]
pub(crate) struct WatcherSignal {
    turns: AtomicU64,
    asleep: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl WatcherSignal {
    pub fn set_thread(&self, thread: Thread) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    pub fn turn_started(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    pub fn wake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}

pub(crate) fn watch(shared: &Arc<Shared>) {
    let mut last_turns = 0;
    let mut idle = 0;
    while !shared.is_stopping() {
        let mut busy = false;
        for slot in shared.slots() {
            if let Some(turn) = slot.current_turn() {
                busy = true;
                inspect(shared, &slot, &turn);
            }
        }
        let turns = shared.watcher_signal.turns.load(Ordering::SeqCst);
        idle = if busy || turns != last_turns { 0 } else { idle + 1 };
        last_turns = turns;
        // A turn that has not started yet cannot be long before `LONG_TURN` has passed.
        sleep_or_poll(shared, if busy { TICK } else { LONG_TURN }, idle, last_turns);
    }
}

fn sleep_or_poll(shared: &Shared, pause: Duration, idle: u32, last_turns: u64) {
    if idle < IDLE_TICKS {
        return thread::park_timeout(pause);
    }
    shared.watcher_signal.asleep.store(true, Ordering::SeqCst);
    // A turn that started before the flag was set did not wake the watcher: check again.
    if shared.watcher_signal.turns.load(Ordering::SeqCst) == last_turns && !shared.is_stopping() {
        thread::park_timeout(Duration::from_secs(60));
    }
    shared.watcher_signal.asleep.store(false, Ordering::SeqCst);
}

fn inspect(shared: &Arc<Shared>, slot: &WorkerSlot, turn: &CurrentTurn) {
    let elapsed = turn.since.elapsed();
    if elapsed < LONG_TURN || slot.is_abandoned() {
        return;
    }
    Shared::release(shared, slot);
    let Some((stop, excess)) = excess(slot, turn, elapsed) else { return };
    if excess >= SHUTOFF_DELAY {
        turn.task.call_host.control.request_stop(stop);
        if let Some(shutoff) = &turn.shutoff {
            shutoff.shut();
        }
    }
    if excess >= shared.options.grace {
        slot.abandon();
        let stop = turn.task.call_host.control.stopped().unwrap_or(stop);
        turn.task.finish(Err(stop.failure()));
    }
}

/// By how much the turn exceeds its CPU time or its deadline.
fn excess(slot: &WorkerSlot, turn: &CurrentTurn, elapsed: Duration) -> Option<(Stop, Duration)> {
    let control = &turn.task.call_host.control;
    let late = Instant::now().saturating_duration_since(control.deadline);
    if !late.is_zero() {
        return Some((Stop::Deadline, late));
    }
    let used = control.used.load(Ordering::Acquire);
    let limit = Duration::from_nanos(control.cpu_limit.saturating_sub(used));
    // CPU time never exceeds wall time, so the file is read only if the wall time exceeds the limit.
    if elapsed <= limit {
        return None;
    }
    let used = cpu_of(slot).map_or(elapsed, |now| Duration::from_nanos(control.used_until(now)));
    used.checked_sub(limit).map(|over| (Stop::CpuTime, over))
}

/// The CPU time of another thread in nanoseconds, where the system provides it.
fn cpu_of(slot: &WorkerSlot) -> Option<u64> {
    let thread = slot.thread.load(Ordering::Acquire);
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    stat.split_ascii_whitespace().next()?.parse().ok()
}

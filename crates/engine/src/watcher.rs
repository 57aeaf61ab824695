//! Watches for turns that take too long. The interpreter stops itself wherever it polls; this is for native loops that
//! do not, and it keeps long turns from holding up the short ones.
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
    worker::{Post, Present},
};

const TICK: Duration = Duration::from_millis(5);
/// A turn as long as this leaves its place in the pool to another worker.
const LONG: Duration = Duration::from_millis(15);
/// After this much too much, allocations fail: the native loop comes back at its next one.
const SHUT_AFTER: Duration = Duration::from_millis(30);
/// After so many looks at nothing, the watcher sleeps until the next turn.
const REST_AFTER: u32 = 13;

/// How workers keep the watcher awake: it looks only while there is something to see.
#[derive(Default)]
pub(crate) struct Pulse {
    beats: AtomicU64,
    resting: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Pulse {
    pub fn set_thread(&self, thread: Thread) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::SeqCst);
        if self.resting.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    pub fn wake(&self) {
        self.resting.store(false, Ordering::SeqCst);
        if let Some(thread) = &*self.thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }
}

pub(crate) fn watch(shared: &Arc<Shared>) {
    let mut seen = 0;
    let mut idle = 0;
    while !shared.is_stopping() {
        let mut busy = false;
        for post in shared.posts() {
            if let Some(present) = post.present() {
                busy = true;
                inspect(shared, &post, &present);
            }
        }
        let beats = shared.pulse.beats.load(Ordering::SeqCst);
        idle = if busy || beats != seen { 0 } else { idle + 1 };
        seen = beats;
        // A turn that has not begun yet is not long before `LONG` has passed.
        rest(shared, if busy { TICK } else { LONG }, idle, seen);
    }
}

fn rest(shared: &Shared, pause: Duration, idle: u32, seen: u64) {
    if idle < REST_AFTER {
        return thread::park_timeout(pause);
    }
    shared.pulse.resting.store(true, Ordering::SeqCst);
    // A beat between the last look and the flag would have found nobody resting: look once more.
    if shared.pulse.beats.load(Ordering::SeqCst) == seen && !shared.is_stopping() {
        thread::park_timeout(Duration::from_secs(60));
    }
    shared.pulse.resting.store(false, Ordering::SeqCst);
}

fn inspect(shared: &Arc<Shared>, post: &Post, present: &Present) {
    let elapsed = present.since.elapsed();
    if elapsed < LONG || post.is_abandoned() {
        return;
    }
    Shared::release(shared, post);
    let Some((stop, excess)) = excess(post, present, elapsed) else { return };
    if excess >= SHUT_AFTER {
        present.task.side.control.trip(stop);
        if let Some(valve) = &present.valve {
            valve.shut();
        }
    }
    if excess >= shared.options.grace {
        post.abandon();
        let stop = present.task.side.control.stopped().unwrap_or(stop);
        present.task.finish(Err(stop.failure()));
    }
}

/// By how much the turn is over its CPU time or its deadline.
fn excess(post: &Post, present: &Present, elapsed: Duration) -> Option<(Stop, Duration)> {
    let control = &present.task.side.control;
    let late = Instant::now().saturating_duration_since(control.deadline);
    if !late.is_zero() {
        return Some((Stop::Deadline, late));
    }
    let used = control.used.load(Ordering::Acquire);
    let limit = Duration::from_nanos(control.cpu_limit.saturating_sub(used));
    // The wall clock runs ahead of the CPU's on a busy machine; the file is read only when it could matter.
    if elapsed <= limit {
        return None;
    }
    let burnt = cpu_of(post).map_or(elapsed, |now| Duration::from_nanos(control.used_until(now)));
    burnt.checked_sub(limit).map(|over| (Stop::CpuTime, over))
}

/// CPU time of another thread, in nanoseconds, where the system tells it.
fn cpu_of(post: &Post) -> Option<u64> {
    let thread = post.thread.load(Ordering::Acquire);
    let told = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    told.split_ascii_whitespace().next()?.parse().ok()
}

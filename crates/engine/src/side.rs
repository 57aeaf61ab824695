//! The host's side of one call: what native functions may consult while a handler runs.
use std::{
    collections::HashMap,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use serde_json::Value;
use tokio::{runtime::Handle, task::AbortHandle, time::timeout_at};

use crate::{
    call::{Function, Host, HostError, HostFuture, Level, Limits},
    control::{Control, Stop},
    task::{Event, Task},
};

const MAX_LINES: usize = 200;
const MAX_LINE_BYTES: usize = 4096;

pub(crate) struct Side {
    pub control: Control,
    pub limits: Limits,
    pub stack_bytes: usize,
    pub functions: Arc<[Function]>,
    pub host: Arc<dyn Host>,
    pub runtime: Handle,
    pub seed: Option<u64>,
    pub draws: AtomicU32,
    pub task: Weak<Task>,
    counts: Counts,
    /// What the caller's runtime does for this call; stopped when the call ends.
    errands: Mutex<HashMap<u32, Errand>>,
}

struct Errand {
    kind: ErrandKind,
    handle: AbortHandle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrandKind {
    HostCall,
    Timer,
}

#[derive(Default)]
struct Counts {
    next: AtomicU32,
    host_calls: AtomicUsize,
    lines: AtomicUsize,
}

/// How a call came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Own,
    Stopped,
}

/// What a [`Side`] is made of.
pub(crate) struct Parts {
    pub limits: Limits,
    pub stack_bytes: usize,
    pub functions: Arc<[Function]>,
    pub host: Arc<dyn Host>,
    pub runtime: Handle,
    pub seed: Option<u64>,
}

impl Side {
    pub fn new(parts: Parts, task: Weak<Task>) -> Self {
        Self {
            control: Control::new(&parts.limits),
            limits: parts.limits,
            stack_bytes: parts.stack_bytes,
            functions: parts.functions,
            host: parts.host,
            runtime: parts.runtime,
            seed: parts.seed,
            draws: AtomicU32::new(0),
            task,
            counts: Counts::default(),
            errands: Mutex::default(),
        }
    }

    pub fn next_id(&self) -> u32 {
        self.counts.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a host call; one too many stops the handler for good, so that catching the error does not help.
    pub fn admit_host_call(&self, pending: usize) -> Result<(), HostError> {
        let made = self.counts.host_calls.fetch_add(1, Ordering::Relaxed);
        if made >= self.limits.total_host_calls || pending >= self.limits.pending_host_calls {
            self.control.trip(Stop::TooManyHostCalls);
            return Err(HostError::new("CANCELLED", "too many host calls"));
        }
        Ok(())
    }

    /// Awaits the answer on the caller's runtime and wakes the realm with it.
    pub fn await_answer(&self, id: u32, future: HostFuture) {
        let task = self.task.clone();
        let deadline = self.limits.deadline.into();
        let mut future = future;
        let awaiting = self.runtime.spawn(async move {
            let answer = poll_fn(|wakeup| poll_guarded(&mut future, wakeup));
            let Ok(answer) = timeout_at(deadline, answer).await else { return };
            wake(&task, Event::Answer { id, answer });
        });
        self.keep(id, ErrandKind::HostCall, awaiting.abort_handle());
    }

    pub fn start_timer(&self, id: u32, delay: Duration) {
        let task = self.task.clone();
        let sleeping = self.runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            wake(&task, Event::Timer(id));
        });
        self.keep(id, ErrandKind::Timer, sleeping.abort_handle());
    }

    fn keep(&self, id: u32, kind: ErrandKind, handle: AbortHandle) {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Errand { kind, handle });
    }

    pub fn forget(&self, id: u32) {
        let errand = self.errands.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(errand) = errand {
            errand.handle.abort();
        }
    }

    /// A handler that came to its own end may have sent something without waiting for it: that runs on, until the
    /// deadline at most. One that was stopped leaves nothing running.
    pub fn stop_errands(&self, ending: Ending) {
        for (_, errand) in self.errands.lock().unwrap_or_else(PoisonError::into_inner).drain() {
            if ending == Ending::Stopped || errand.kind == ErrandKind::Timer {
                errand.handle.abort();
            }
        }
    }

    pub fn write_line(&self, level: Level, mut text: String) {
        if self.counts.lines.fetch_add(1, Ordering::Relaxed) >= MAX_LINES {
            return;
        }
        if text.len() > MAX_LINE_BYTES {
            text.truncate(text.floor_char_boundary(MAX_LINE_BYTES));
        }
        self.host.console(level, text);
    }
}

/// A host that panics must not take the call with it: the handler is told that the capability failed.
pub(crate) fn poll_guarded(future: &mut HostFuture, wakeup: &mut TaskContext<'_>) -> Poll<Answer> {
    catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(wakeup)))
        .unwrap_or_else(|_| Poll::Ready(Err(HostError::new("INTERNAL", "the capability failed"))))
}

fn wake(task: &Weak<Task>, event: Event) {
    if let Some(task) = task.upgrade() {
        Task::wake(&task, event);
    }
}

/// An answer of the host, as the realm receives it.
pub(crate) type Answer = Result<Value, HostError>;

//! The host of one call, as native functions use it while a handler runs: limits, timers, host calls, console.
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
    call::{Host, HostError, HostFunction, HostFuture, Level, Limits},
    control::{Control, Stop},
    task::{Event, Task},
};

const MAX_LINES: usize = 200;
const MAX_LINE_BYTES: usize = 4096;

pub(crate) struct CallHost {
    pub control: Control,
    pub limits: Limits,
    pub stack_bytes: usize,
    pub functions: Arc<[HostFunction]>,
    pub host: Arc<dyn Host>,
    pub runtime: Handle,
    pub seed: Option<u64>,
    pub draws: AtomicU32,
    pub task: Weak<Task>,
    counts: Counts,
    /// Host calls and timers on the caller's runtime; stopped when the call ends.
    jobs: Mutex<HashMap<u32, BackgroundJob>>,
}

struct BackgroundJob {
    kind: JobKind,
    handle: AbortHandle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum JobKind {
    HostCall,
    Timer,
}

#[derive(Default)]
struct Counts {
    next: AtomicU32,
    host_calls: AtomicUsize,
    lines: AtomicUsize,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Completed,
    Stopped,
}

/// The parameters of [`CallHost::new`].
pub(crate) struct CallHostParts {
    pub limits: Limits,
    pub stack_bytes: usize,
    pub functions: Arc<[HostFunction]>,
    pub host: Arc<dyn Host>,
    pub runtime: Handle,
    pub seed: Option<u64>,
}

impl CallHost {
    pub fn new(parts: CallHostParts, task: Weak<Task>) -> Self {
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
            jobs: Mutex::default(),
        }
    }

    pub fn next_id(&self) -> u32 {
        self.counts.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a host call. Exceeding a limit stops the handler, even if it catches the error.
    pub fn count_host_call(&self, pending: usize) -> Result<(), HostError> {
        let made = self.counts.host_calls.fetch_add(1, Ordering::Relaxed);
        if made >= self.limits.total_host_calls || pending >= self.limits.pending_host_calls {
            self.control.request_stop(Stop::TooManyHostCalls);
            return Err(HostError::new("CANCELLED", "too many host calls"));
        }
        Ok(())
    }

    /// Awaits the result on the caller's runtime and wakes the task with it.
    pub fn await_result(&self, id: u32, future: HostFuture) {
        let task = self.task.clone();
        let deadline = self.limits.deadline.into();
        let mut future = future;
        let awaiting = self.runtime.spawn(async move {
            let result = poll_fn(|wakeup| poll_guarded(&mut future, wakeup));
            let Ok(result) = timeout_at(deadline, result).await else { return };
            wake(&task, Event::HostResult { id, result });
        });
        self.register_job(id, JobKind::HostCall, awaiting.abort_handle());
    }

    pub fn start_timer(&self, id: u32, delay: Duration) {
        let task = self.task.clone();
        let sleeping = self.runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            wake(&task, Event::Timer(id));
        });
        self.register_job(id, JobKind::Timer, sleeping.abort_handle());
    }

    fn register_job(&self, id: u32, kind: JobKind, handle: AbortHandle) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(id, BackgroundJob { kind, handle });
    }

    pub fn cancel_job(&self, id: u32) {
        let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(job) = job {
            job.handle.abort();
        }
    }

    /// When a handler completes, host calls that it did not await continue until the deadline. When it is stopped, all
    /// jobs are aborted.
    pub fn stop_jobs(&self, ending: CallEnd) {
        for (_, job) in self.jobs.lock().unwrap_or_else(PoisonError::into_inner).drain() {
            if ending == CallEnd::Stopped || job.kind == JobKind::Timer {
                job.handle.abort();
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

/// Turns a panic of the host into an error for the handler.
pub(crate) fn poll_guarded(future: &mut HostFuture, wakeup: &mut TaskContext<'_>) -> Poll<HostResult> {
    catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(wakeup)))
        .unwrap_or_else(|_| Poll::Ready(Err(HostError::new("INTERNAL", "the capability failed"))))
}

fn wake(task: &Weak<Task>, event: Event) {
    if let Some(task) = task.upgrade() {
        Task::wake(&task, event);
    }
}

/// The result of a host call.
pub(crate) type HostResult = Result<Value, HostError>;

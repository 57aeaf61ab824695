//! The public entry: [`Engine::run`].
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{runtime::Handle, sync::oneshot, time::sleep_until};

use crate::{
    call::{HandlerCall, HostFunction},
    control::Stop,
    failure::Failure,
    host::CallHostParts,
    pool::Shared,
    prelude,
    spin::spin_until,
    task::{Event, Input, Task},
};

/// The configuration of an engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The functions in every handler's `context`; the host decides which of them a call may use.
    pub functions: Vec<HostFunction>,
    /// The number of workers for short turns.
    pub threads: usize,
    /// The limit of all workers, including those in long turns and abandoned ones.
    pub max_threads: usize,
    /// The limit of concurrent calls; further calls fail with `Overloaded`.
    pub max_calls: usize,
    /// The limit of spare realms, each about a megabyte. Half as many are created in advance.
    pub spare_realms: usize,
    /// How long a native loop may exceed its limit before its thread is abandoned.
    pub grace: Duration,
    pub thread_stack_bytes: usize,
    /// How long an idle worker spins for a call, and a caller for its result, before they sleep. It adapts to how often
    /// that succeeds; zero turns it off.
    pub spin: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        Self {
            functions: Vec::new(),
            threads,
            max_threads: threads + 32,
            max_calls: 1024,
            spare_realms: threads * 4,
            grace: Duration::from_millis(80),
            thread_stack_bytes: 4 << 20,
            spin: Duration::from_micros(100),
        }
    }
}

/// How long a spinning caller keeps its thread before it yields to other tasks.
const SPIN_SLICE: Duration = Duration::from_micros(4);

type ResultReceiver = oneshot::Receiver<Result<Value, Failure>>;

/// Runs handlers, each call in its own realm, on the engine's own threads.
pub struct Engine {
    shared: Arc<Shared>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Engine").field("options", &self.shared.options).finish()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Engine {
    /// Compiles the engine's own JavaScript on a separate thread. Calling it early shortens the start of the process.
    pub fn warm_up() {
        // If the thread cannot be started, the first realm compiles it.
        let _ = thread::Builder::new().name("js-begin".to_owned()).spawn(prelude::prepare);
    }

    pub fn new(options: Options) -> Self {
        Self { shared: Shared::start(options) }
    }

    /// Calls `execute` of the program's handler and awaits its result. Must be awaited on a tokio runtime with time.
    /// Dropping the future cancels the call.
    pub async fn run(&self, call: HandlerCall) -> Result<Value, Failure> {
        let runtime = Handle::try_current().map_err(|_| Failure::EngineLost)?;
        let _permit = CallPermit::take(&self.shared)?;
        let (deadline, cancel) = (call.limits.deadline, call.cancel.clone());
        if cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        if Instant::now() >= deadline {
            return Err(Failure::Deadline);
        }
        let (reply, mut receiver) = oneshot::channel();
        let task = self.task(call, runtime, reply);
        let mut watch = CancelOnDrop { task: Some(task.clone()) };
        self.shared.push(task);

        if let Some(result) = self.spin_for_result(&mut receiver).await {
            watch.task = None;
            return result;
        }
        let mut late = pin!(sleep_until(deadline.into()));
        let mut cancelled = pin!(cancel.cancelled());
        let outcome = poll_fn(|wakeup| {
            if let Poll::Ready(result) = std::pin::Pin::new(&mut receiver).poll(wakeup) {
                return Poll::Ready(Ok(result));
            }
            if cancelled.as_mut().poll(wakeup).is_ready() {
                return Poll::Ready(Err(Stop::Cancelled));
            }
            late.as_mut().poll(wakeup).map(|()| Err(Stop::Deadline))
        })
        .await;
        match outcome {
            Ok(result) => {
                watch.task = None;
                result.unwrap_or(Err(Failure::EngineLost))
            }
            Err(stop) => {
                watch.abandon(stop);
                Err(stop.failure())
            }
        }
    }

    /// Spins for the result: most calls take less time than waking a thread. Yields to other tasks of the thread
    /// regularly.
    async fn spin_for_result(&self, receiver: &mut ResultReceiver) -> Option<Result<Value, Failure>> {
        let (shared, time) = (&*self.shared, self.shared.options.spin);
        if time.is_zero() || shared.in_flight() > shared.max_spinners || !shared.caller_spins.should_spin() {
            return None;
        }
        let began = Instant::now();
        let found = poll_fn(|wakeup| {
            if let Some(found) = spin_until(SPIN_SLICE, || receiver.try_recv().ok()) {
                return Poll::Ready(Some(found));
            }
            if began.elapsed() >= time || shared.in_flight() > shared.max_spinners {
                return Poll::Ready(None);
            }
            wakeup.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        shared.caller_spins.record(found.is_some());
        found
    }

    fn task(&self, call: HandlerCall, runtime: Handle, reply: crate::task::Reply) -> Arc<Task> {
        let stack_bytes = call.limits.stack_bytes.min(self.shared.options.thread_stack_bytes / 4);
        let input = Input { program: call.program, args: call.args, context: call.context, now: call.now };
        let parts = CallHostParts {
            limits: call.limits,
            stack_bytes,
            functions: self.shared.functions.clone(),
            host: call.host,
            runtime,
            seed: call.seed,
        };
        Task::new(parts, input, reply, Arc::downgrade(&self.shared))
    }
}

/// Counts as one of the concurrent calls until it is dropped.
struct CallPermit<'a>(&'a Shared);

impl<'a> CallPermit<'a> {
    fn take(shared: &'a Shared) -> Result<Self, Failure> {
        shared.enter().map(|()| Self(shared))
    }
}

impl Drop for CallPermit<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Cancels the call if its caller stops waiting.
struct CancelOnDrop {
    task: Option<Arc<Task>>,
}

impl CancelOnDrop {
    fn abandon(&mut self, stop: Stop) {
        if let Some(task) = self.task.take() {
            task.call_host.control.request_stop(stop);
            Task::wake(&task, Event::Abort);
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.abandon(Stop::Cancelled);
    }
}

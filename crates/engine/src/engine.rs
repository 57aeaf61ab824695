//! The engine as its callers see it: [`Engine::run`].
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
    call::{Call, Function},
    control::Stop,
    failure::Failure,
    luck::look,
    pool::Shared,
    prelude,
    side::Parts,
    task::{Event, Input, Task},
};

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// What handlers find in `context`, whichever they are; the host decides what it grants to a call.
    pub functions: Vec<Function>,
    /// Workers that are free for short turns.
    pub threads: usize,
    /// All workers together, with those held up by long turns and those given up on.
    pub max_threads: usize,
    /// Calls in the engine at a time; one more is refused as overloaded.
    pub max_calls: usize,
    /// Realms kept for calls to come, each about a megabyte; half as many are made ahead.
    pub spare_realms: usize,
    /// How far a native loop may exceed its limit before its thread is given up on.
    pub grace: Duration,
    pub thread_stack_bytes: usize,
    /// How long an idle worker looks for a call, and a caller for its answer, before they sleep. They learn when it
    /// does not pay; zero is never.
    pub look: Duration,
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
            look: Duration::from_micros(100),
        }
    }
}

/// How long a caller that looks for its answer keeps its thread from other tasks.
const SLICE: Duration = Duration::from_micros(4);

type Answer = oneshot::Receiver<Result<Value, Failure>>;

/// Runs handlers, each call in a realm of its own, on a few threads of its own.
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
    /// Begins on a thread of its own what the first engine of the process waits for. Worth calling before anything
    /// else is read, and no more than that.
    pub fn begin() {
        // Without the thread, the first realm does it.
        let _ = thread::Builder::new().name("js-begin".to_owned()).spawn(prelude::prepare);
    }

    pub fn new(options: Options) -> Self {
        Self { shared: Shared::start(options) }
    }

    /// Calls `execute` of the program's handler and waits for what it settles to. Must be awaited on a tokio runtime
    /// with time; dropping the future cancels the call.
    pub async fn run(&self, call: Call) -> Result<Value, Failure> {
        let runtime = Handle::try_current().map_err(|_| Failure::EngineLost)?;
        let _seat = Seat::take(&self.shared)?;
        let (deadline, cancel) = (call.limits.deadline, call.cancel.clone());
        if cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        if Instant::now() >= deadline {
            return Err(Failure::Deadline);
        }
        let (reply, mut answer) = oneshot::channel();
        let task = self.task(call, runtime, reply);
        let mut watch = Abandon { task: Some(task.clone()) };
        self.shared.push(task);

        if let Some(answer) = self.look_for(&mut answer).await {
            watch.task = None;
            return answer;
        }
        let mut late = pin!(sleep_until(deadline.into()));
        let mut cancelled = pin!(cancel.cancelled());
        let outcome = poll_fn(|wakeup| {
            if let Poll::Ready(answer) = std::pin::Pin::new(&mut answer).poll(wakeup) {
                return Poll::Ready(Ok(answer));
            }
            if cancelled.as_mut().poll(wakeup).is_ready() {
                return Poll::Ready(Err(Stop::Cancelled));
            }
            late.as_mut().poll(wakeup).map(|()| Err(Stop::Deadline))
        })
        .await;
        match outcome {
            Ok(answer) => {
                watch.task = None;
                answer.unwrap_or(Err(Failure::EngineLost))
            }
            Err(stop) => {
                watch.abandon(stop);
                Err(stop.failure())
            }
        }
    }

    /// Most answers come sooner than a sleeper could be woken. Other tasks of the caller's thread get their turns
    /// meanwhile.
    async fn look_for(&self, answer: &mut Answer) -> Option<Result<Value, Failure>> {
        let (shared, time) = (&*self.shared, self.shared.options.look);
        if time.is_zero() || shared.in_flight() > shared.lookers || !shared.waiting.try_it() {
            return None;
        }
        let began = Instant::now();
        let found = poll_fn(|wakeup| {
            if let Some(found) = look(SLICE, || answer.try_recv().ok()) {
                return Poll::Ready(Some(found));
            }
            if began.elapsed() >= time || shared.in_flight() > shared.lookers {
                return Poll::Ready(None);
            }
            wakeup.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        shared.waiting.learn(found.is_some());
        found
    }

    fn task(&self, call: Call, runtime: Handle, reply: crate::task::Reply) -> Arc<Task> {
        let stack_bytes = call.limits.stack_bytes.min(self.shared.options.thread_stack_bytes / 4);
        let input = Input { program: call.program, args: call.args, context: call.context, now: call.now };
        let parts = Parts {
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

/// One of the calls that the engine admits at a time.
struct Seat<'a>(&'a Shared);

impl<'a> Seat<'a> {
    fn take(shared: &'a Shared) -> Result<Self, Failure> {
        shared.enter().map(|()| Self(shared))
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Stops a call whose caller does not wait any more.
struct Abandon {
    task: Option<Arc<Task>>,
}

impl Abandon {
    fn abandon(&mut self, stop: Stop) {
        if let Some(task) = self.task.take() {
            task.side.control.trip(stop);
            Task::wake(&task, Event::Abort);
        }
    }
}

impl Drop for Abandon {
    fn drop(&mut self) {
        self.abandon(Stop::Cancelled);
    }
}

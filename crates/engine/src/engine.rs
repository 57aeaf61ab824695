//! The public entry: [`Engine::run`].
use std::{fmt, path::PathBuf, sync::Arc, thread, time::Instant};

use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::sleep_until,
};

use crate::{
    call::{HandlerCall, HostFunction},
    exchange::Exchange,
    failure::Failure,
    pool::Pool,
};

/// The configuration of an engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program whose processes run the handlers: its `main` starts with [`run_if_worker`](crate::run_if_worker).
    /// Without one, every call fails with `NoWorker`.
    pub worker: Option<PathBuf>,
    /// The functions in every handler's `context`; the host decides which of them a call may use.
    pub functions: Vec<HostFunction>,
    /// The backstop for concurrent calls, each in a process of its own. Further calls wait until their deadline, in no
    /// fair order: callers limit concurrency themselves, and leave room for nested calls beside those that wait for
    /// them.
    pub max_calls: usize,
    /// The limit of workers that wait for the next call of their handler.
    pub max_idle_workers: usize,
}

impl Default for Options {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(2, usize::from);
        Self { worker: None, functions: Vec::new(), max_calls: 1024, max_idle_workers: 16.max(threads * 4) }
    }
}

/// Runs handlers, each call in a realm of its own in a worker process. Cloning shares the workers.
#[derive(Clone)]
pub struct Engine(Arc<Shared>);

struct Shared {
    options: Options,
    functions: Arc<[HostFunction]>,
    pool: Pool,
    permits: Arc<Semaphore>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Engine").field("options", &self.0.options).finish()
    }
}

/// Why a call is stopped from outside.
#[derive(Clone, Copy)]
enum Stop {
    Cancelled,
    Deadline,
}

impl Stop {
    /// The reason as `context.signal` has it.
    fn reason(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
        }
    }

    fn failure(self) -> Failure {
        match self {
            Self::Cancelled => Failure::Cancelled,
            Self::Deadline => Failure::Deadline,
        }
    }
}

impl Engine {
    /// Starts no process yet.
    pub fn new(options: Options) -> Self {
        let functions: Arc<[HostFunction]> = options.functions.as_slice().into();
        let pool = Pool::new(options.worker.clone(), Arc::clone(&functions), options.max_idle_workers);
        let permits = Arc::new(Semaphore::new(options.max_calls));
        Self(Arc::new(Shared { options, functions, pool, permits }))
    }

    /// Starts the first worker before the first call.
    pub fn warm_up(&self) -> Result<(), Failure> {
        self.0.pool.warm_up()
    }

    /// How many more calls can run now.
    pub fn free_calls(&self) -> usize {
        self.0.permits.available_permits()
    }

    /// Calls `execute` of the program's handler and awaits its result. Must be awaited on a tokio runtime with IO and
    /// time. Dropping the future kills the call.
    pub async fn run(&self, mut call: HandlerCall) -> Result<Value, Failure> {
        let runtime = Handle::try_current().map_err(|_| Failure::EngineLost)?;
        let permit = self.permit(&call).await?;
        let (args, context) = (call.args.take(), call.context.take());
        let worker = self.0.pool.take(&call.program)?;
        let made = Exchange::new(worker, Arc::clone(&self.0.functions), &call, args, context);
        let mut exchange = made.map_err(|error| Failure::NoWorker(error.to_string()))?;
        let stop = tokio::select! {
            biased;
            ended = exchange.run() => {
                if ended.reusable && let Ok(worker) = exchange.into_worker() {
                    self.0.pool.put_back(worker);
                }
                return ended.result;
            }
            () = call.cancel.cancelled() => Stop::Cancelled,
            () = sleep_until(call.limits.deadline.into()) => Stop::Deadline,
        };
        runtime.spawn(async move {
            exchange.abort(stop.reason()).await;
            drop(permit);
        });
        Err(stop.failure())
    }

    /// Waits until the call may run.
    async fn permit(&self, call: &HandlerCall) -> Result<OwnedSemaphorePermit, Failure> {
        if call.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        if Instant::now() >= call.limits.deadline {
            return Err(Failure::Deadline);
        }
        let permits = Arc::clone(&self.0.permits);
        tokio::select! {
            biased;
            permit = permits.acquire_owned() => permit.map_err(|_| Failure::EngineLost),
            () = call.cancel.cancelled() => Err(Failure::Cancelled),
            () = sleep_until(call.limits.deadline.into()) => Err(Failure::Overloaded),
        }
    }
}

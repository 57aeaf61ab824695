//! The input of the engine: a program, plain data, the host and the limits of one call.
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::program::Program;

/// One call of a handler.
#[derive(Clone)]
pub struct HandlerCall {
    pub program: Arc<Program>,
    pub args: Value,
    /// Plain data, frozen for the handler. Host functions and `signal` replace fields of the same name.
    pub context: Value,
    pub host: Arc<dyn Host>,
    pub limits: Limits,
    pub cancel: Cancel,
    /// A fixed time for `Date`, in milliseconds since 1970; the real clock if absent.
    pub now: Option<i64>,
    /// Makes `Math.random` and `crypto` deterministic, for tests.
    pub seed: Option<u64>,
}

impl fmt::Debug for HandlerCall {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HandlerCall")
            .field("program", &self.program.name)
            .field("limits", &self.limits)
            .finish()
    }
}

/// The limits of one call. Exceeding each of them is its own variant of [`Failure`](crate::Failure).
#[derive(Clone, Debug)]
pub struct Limits {
    pub memory_bytes: usize,
    pub cpu: Duration,
    pub deadline: Instant,
    pub stack_bytes: usize,
    /// The limit of the result and of the arguments of each host call, as JSON text.
    pub output_bytes: usize,
    /// The limit of everything that the handler passes to the host: result, arguments of host calls, console lines.
    pub total_bytes: usize,
    pub pending_host_calls: usize,
    pub total_host_calls: usize,
}

impl Limits {
    /// The default limits, with a deadline after `time`.
    pub fn within(time: Duration) -> Self {
        Self {
            memory_bytes: 64 << 20,
            cpu: Duration::from_secs(1),
            deadline: Instant::now() + time,
            stack_bytes: 512 << 10,
            output_bytes: 1 << 20,
            total_bytes: 4 << 20,
            pending_host_calls: 64,
            total_host_calls: 1000,
        }
    }
}

/// A host function at a dotted path of `context`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFunction {
    pub path: String,
    pub kind: FunctionKind,
}

impl HostFunction {
    pub fn asynchronous(path: impl Into<String>) -> Self {
        Self { path: path.into(), kind: FunctionKind::Async }
    }

    pub fn synchronous(path: impl Into<String>) -> Self {
        Self { path: path.into(), kind: FunctionKind::Sync }
    }

    /// The member of `context` that contains the function, or is it.
    pub(crate) fn group_or_name(&self) -> &str {
        self.path.split_once('.').map_or(&self.path, |(group, _)| group)
    }
}

/// Whether a host function returns a promise or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionKind {
    Async,
    Sync,
}

/// The pending result of a host function.
pub type HostFuture = Pin<Box<dyn Future<Output = Result<Value, HostError>> + Send>>;

/// Implements the host functions. It is called on the task that awaits the call, so it must not block. Host calls that
/// the handler does not await end with the call.
pub trait Host: Send + Sync {
    fn call(&self, path: &str, args: Vec<Value>) -> HostFuture;
    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError>;
    fn console(&self, level: Level, text: String);
}

/// The error of a host function. The handler gets an `Error` with this message, `code` and `retryAfterMs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostError {
    pub code: String,
    pub message: String,
    /// When a retry may succeed, if the other side said so.
    pub retry_after_ms: Option<u32>,
}

impl HostError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retry_after_ms: None }
    }
}

/// The level of a line written to `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Cancels the calls that have a clone of it.
#[derive(Clone, Debug)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves once it is cancelled.
    pub async fn cancelled(&self) {
        let mut changes = self.0.subscribe();
        // The sender is in `self`, so waiting cannot fail.
        let _ = changes.wait_for(|cancelled| *cancelled).await;
    }
}

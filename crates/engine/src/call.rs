//! What a caller hands to the engine: a program, plain data, the host's functions and the limits of one call.
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::sync::watch;

use crate::program::Program;

/// One call of a handler. Nothing of it survives the call.
#[derive(Clone)]
pub struct Call {
    pub program: Arc<Program>,
    pub args: Value,
    /// Plain data, frozen for the handler; the engine's functions and `signal` take the place of members of their names.
    pub context: Value,
    pub host: Arc<dyn Host>,
    pub limits: Limits,
    pub cancel: Cancel,
    /// Milliseconds since 1970 at which `Date` stands still; the real clock when absent.
    pub now: Option<i64>,
    /// Makes `Math.random` and `crypto` repeat themselves; for tests only.
    pub seed: Option<u64>,
}

impl fmt::Debug for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Call").field("program", &self.program.name()).field("limits", &self.limits).finish()
    }
}

/// What one call may use up. Each breach is a [`Failure`](crate::Failure) of its own.
#[derive(Clone, Debug)]
pub struct Limits {
    pub memory_bytes: usize,
    pub cpu: Duration,
    pub deadline: Instant,
    /// Clamped to a quarter of the workers' stack.
    pub stack_bytes: usize,
    /// Of the result, and of the arguments of each host call, counted as JSON text.
    pub output_bytes: usize,
    pub pending_host_calls: usize,
    pub total_host_calls: usize,
}

impl Limits {
    /// The default limits, with a deadline that far from now.
    pub fn within(time: Duration) -> Self {
        Self {
            memory_bytes: 64 << 20,
            cpu: Duration::from_secs(1),
            deadline: Instant::now() + time,
            stack_bytes: 512 << 10,
            output_bytes: 1 << 20,
            pending_host_calls: 64,
            total_host_calls: 1000,
        }
    }
}

/// A function of the host that every handler finds at a dotted path of `context`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub path: String,
    pub kind: Kind,
}

impl Function {
    pub fn asynchronous(path: impl Into<String>) -> Self {
        Self { path: path.into(), kind: Kind::Async }
    }

    pub fn synchronous(path: impl Into<String>) -> Self {
        Self { path: path.into(), kind: Kind::Sync }
    }
}

/// Whether a host function answers with a promise or at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Async,
    Sync,
}

/// A future that a host function returns.
pub type HostFuture = Pin<Box<dyn Future<Output = Result<Value, HostError>> + Send>>;

/// All that a handler can reach. It is called on the engine's threads, so it must not block; the first poll of a
/// future happens there too, everything later on the caller's runtime.
pub trait Host: Send + Sync {
    fn call(&self, path: &str, args: Vec<Value>) -> HostFuture;
    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError>;
    fn console(&self, level: Level, text: String);
}

/// Becomes an `Error` with this message and `code` in the handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    pub code: String,
    pub message: String,
}

impl HostError {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// Of a line written to `console`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Cancels the calls that hold a clone of it.
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

    /// Resolves once it is cancelled, at once if it has been already.
    pub async fn cancelled(&self) {
        let mut changes = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail before the value turns.
        let _ = changes.wait_for(|cancelled| *cancelled).await;
    }
}

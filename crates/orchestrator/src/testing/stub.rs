//! A host whose capabilities return what a test declares, and which records their calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use toolwright_engine::{Host, HostError, HostFuture, Level};

use super::case::Stub;

/// The capabilities of one test.
#[derive(Debug)]
pub(super) struct StubHost {
    stubs: BTreeMap<String, Stub>,
    recorded: Mutex<RecordedCalls>,
}

#[derive(Debug, Default)]
struct RecordedCalls {
    calls: Vec<(String, Vec<Value>)>,
    /// How often each was called.
    counts: HashMap<String, usize>,
    /// The lines that the handler, or the orchestrator about it, has logged.
    log: Vec<String>,
}

impl StubHost {
    pub fn new(stubs: BTreeMap<String, Stub>) -> Self {
        Self { stubs, recorded: Mutex::default() }
    }

    /// The calls, in order.
    pub fn calls(&self) -> Vec<(String, Vec<Value>)> {
        self.lock_recorded().calls.clone()
    }

    /// Log lines, in order.
    pub fn log(&self) -> Vec<String> {
        self.lock_recorded().log.clone()
    }

    fn lock_recorded(&self) -> MutexGuard<'_, RecordedCalls> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        let mut recorded = self.lock_recorded();
        recorded.calls.push((path.to_owned(), args));
        let count = recorded.counts.entry(path.to_owned()).or_default();
        let index = *count;
        *count += 1;
        match self.stubs.get(path) {
            Some(Stub::Returns(value)) => Ok(value.clone()),
            Some(Stub::ReturnsEach(values)) => values.get(index).cloned().ok_or_else(|| {
                HostError::new(
                    "NOT_CONFIGURED",
                    format!("the stub of {path} has no result number {}", index + 1),
                )
            }),
            Some(Stub::Throws(thrown)) => Err(HostError {
                retry_after_ms: thrown.retry_after_ms,
                ..HostError::new(&thrown.code, &thrown.message)
            }),
            None if matches!(path, "audit.log" | "progress") => Ok(Value::Null),
            None => Err(HostError::new("NOT_CONFIGURED", format!("the test has no stub for {path}"))),
        }
    }
}

impl Host for StubHost {
    fn call(&self, path: &str, args: Vec<Value>) -> HostFuture {
        let answer = self.answer(path, args);
        Box::pin(std::future::ready(answer))
    }

    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        self.answer(path, args)
    }

    fn console(&self, level: Level, text: String) {
        let level = match level {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        };
        self.lock_recorded().log.push(format!("{level}: {text}"));
    }
}

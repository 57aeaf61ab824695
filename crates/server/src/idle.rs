//! The idle timeout of a connection: how long it may take to send the head of a request and to read the response
//! before. It is paused while the server works on a request or streams a response.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct IdleTimer {
    timeout: Duration,
    /// `None` while paused.
    deadline: Mutex<Option<Instant>>,
}

impl IdleTimer {
    /// A timer that runs.
    pub fn started(timeout: Duration) -> Arc<Self> {
        let timer = Self { timeout, deadline: Mutex::default() };
        timer.restart();
        Arc::new(timer)
    }

    pub fn restart(&self) {
        *self.locked() = Instant::now().checked_add(self.timeout);
    }

    pub fn pause(&self) {
        *self.locked() = None;
    }

    /// Restarts the timer when the returned guard is dropped.
    pub fn restart_later(self: &Arc<Self>) -> RestartOnDrop {
        RestartOnDrop(Arc::clone(self))
    }

    /// Resolves when the deadline has passed. A deadline only ever moves into the future, so it is enough to look at it
    /// again when the one seen last has passed: a request costs no change of the runtime's timers.
    pub async fn expired(&self) {
        loop {
            let deadline = *self.locked();
            match deadline {
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => tokio::time::sleep(self.timeout).await,
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<Instant>> {
        self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Belongs to a streamed response: when the stream ends, the connection is idle again.
#[derive(Debug)]
pub(crate) struct RestartOnDrop(Arc<IdleTimer>);

impl Drop for RestartOnDrop {
    fn drop(&mut self) {
        self.0.restart();
    }
}

//! The idle timeout of a connection: how long it may take to send the head of a request and to read the response
//! before. It is paused while the server works on a request or streams a response.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct IdleTimer {
    timeout: Duration,
    state: Mutex<State>,
    /// Notified when the connection is closed to make room for another.
    closed: Notify,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Idle {
        since: Instant,
    },
    /// The server works on a request or streams a response.
    Busy,
    Closed,
}

impl IdleTimer {
    /// A timer that runs.
    pub fn started(timeout: Duration) -> Arc<Self> {
        let state = Mutex::new(State::Idle { since: Instant::now() });
        Arc::new(Self { timeout, state, closed: Notify::new() })
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    pub fn restart(&self) {
        let mut state = self.locked();
        if !matches!(*state, State::Closed) {
            *state = State::Idle { since: Instant::now() };
        }
    }

    /// Pauses the timer for a request. False when the connection is being closed: the request must not run.
    pub fn pause(&self) -> bool {
        let mut state = self.locked();
        if matches!(*state, State::Closed) {
            return false;
        }
        *state = State::Busy;
        true
    }

    /// Closes an idle connection. False when it is busy, or closed already.
    pub fn close(&self) -> bool {
        let mut state = self.locked();
        if !matches!(*state, State::Idle { .. }) {
            return false;
        }
        *state = State::Closed;
        self.closed.notify_one();
        true
    }

    pub fn is_closed(&self) -> bool {
        matches!(*self.locked(), State::Closed)
    }

    /// The time since which it is idle; `None` while it is busy or closed.
    pub fn idle_since(&self) -> Option<Instant> {
        match *self.locked() {
            State::Idle { since } => Some(since),
            State::Busy | State::Closed => None,
        }
    }

    /// Restarts the timer when the returned guard is dropped.
    pub fn restart_later(self: &Arc<Self>) -> RestartOnDrop {
        RestartOnDrop(Arc::clone(self))
    }

    /// Resolves when the connection has been idle for too long, or was closed. The deadline only moves forward, so the
    /// timer is re-armed when it fires, not with each request.
    pub async fn expired(&self) {
        loop {
            let state = *self.locked();
            let remaining = match state {
                State::Closed => return,
                State::Idle { since } => self.timeout.saturating_sub(since.elapsed()),
                State::Busy => self.timeout,
            };
            if remaining.is_zero() {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(remaining) => {}
                () = self.closed.notified() => {}
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

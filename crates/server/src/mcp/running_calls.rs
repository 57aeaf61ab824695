//! The running calls of MCP sessions that bypass the library, so that their MCP hosts can cancel them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use tokio::sync::oneshot;

/// Session and request.
type Key = (String, RequestId);

/// A call is cancelled by dropping its sender.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<HashMap<Key, oneshot::Sender<()>>>);

impl RunningCalls {
    /// Registers a call; `None` if a call of the same request already runs.
    pub fn begin(&self, session: &str, request: &RequestId) -> Option<RunningCall<'_>> {
        let key = (session.to_owned(), request.clone());
        let (sender, cancelled) = oneshot::channel();
        match self.locked().entry(key.clone()) {
            Entry::Vacant(entry) => _ = entry.insert(sender),
            Entry::Occupied(_) => return None,
        }
        Some(RunningCall { calls: self, key, cancelled })
    }

    pub fn cancel(&self, session: &str, request: &RequestId) {
        self.locked().remove(&(session.to_owned(), request.clone()));
    }

    pub fn cancel_session(&self, session: &str) {
        self.locked().retain(|(owner, _), _| owner != session);
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Key, oneshot::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered call, until it is dropped.
pub(super) struct RunningCall<'a> {
    calls: &'a RunningCalls,
    key: Key,
    cancelled: oneshot::Receiver<()>,
}

impl RunningCall<'_> {
    /// Resolves when the MCP host cancels the call or ends its session.
    pub async fn cancelled(&mut self) {
        // Dropping the sender is the signal.
        let _ = (&mut self.cancelled).await;
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut calls = self.calls.locked();
        // A cancelled call is removed already, and another one may have its key.
        if self.cancelled.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
            calls.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: RequestId = RequestId::Number(1);
    const SECOND: RequestId = RequestId::Number(2);

    #[test]
    fn a_request_has_one_running_call() {
        let calls = RunningCalls::default();
        let running = calls.begin("mcp_1", &FIRST);
        assert!(running.is_some());
        assert!(calls.begin("mcp_1", &FIRST).is_none());
        assert!(calls.begin("mcp_1", &SECOND).is_some());
        assert!(calls.begin("mcp_2", &FIRST).is_some());
        drop(running);
        assert!(calls.begin("mcp_1", &FIRST).is_some());
    }

    #[tokio::test]
    async fn a_call_is_cancelled_by_its_request_or_with_its_session() {
        let calls = RunningCalls::default();
        let mut cancelled = calls.begin("mcp_1", &FIRST).unwrap();
        let mut other = calls.begin("mcp_1", &SECOND).unwrap();
        calls.cancel("mcp_1", &FIRST);
        cancelled.cancelled().await;
        assert_eq!(other.cancelled.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let mut again = calls.begin("mcp_1", &FIRST).unwrap();
        drop(cancelled);
        assert_eq!(again.cancelled.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        calls.cancel_session("mcp_1");
        other.cancelled().await;
    }
}

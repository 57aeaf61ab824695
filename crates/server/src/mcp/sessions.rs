//! The MCP sessions over HTTP whose plain calls pass the library by: it must hear of a session now and then, or it takes
//! it for abandoned, and a host may cancel a call that the library does not know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::RequestId;
use tokio::sync::oneshot;

/// A call goes through the library when that has not heard of its session for so long.
const UNHEARD: Duration = Duration::from_secs(15 * 60);
/// A session that the library has not heard of for so long is closed, and its host begins another: nobody has used it for half
/// an hour then.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60).saturating_add(UNHEARD);
/// Sessions at a time. Each has a task and a few kilobytes.
pub(super) const MOST: usize = 10_000;

/// By the name of the orchestrator's session.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<Arc<str>, Session>>);

struct Session {
    /// When the library has heard of it.
    heard: Instant,
    /// Its host has taken on a newer toolset, in a session of which only its handler knows.
    is_renewed: bool,
    /// Whoever cancels a call drops its sender.
    running: HashMap<RequestId, oneshot::Sender<()>>,
}

impl Sessions {
    pub fn begin(&self, name: &str) {
        let mut all = self.locked();
        // The library closes sessions by itself and does not say so.
        if all.len() >= MOST {
            all.retain(|_, session| !session.running.is_empty() || session.heard.elapsed() < IDLE);
        }
        let new = Session { heard: Instant::now(), is_renewed: false, running: HashMap::new() };
        all.insert(Arc::from(name), new);
    }

    /// A request of the session went through the library.
    pub fn hear(&self, name: &str) {
        if let Some(session) = self.locked().get_mut(name) {
            session.heard = Instant::now();
        }
    }

    pub fn renew(&self, name: &str) {
        if let Some(session) = self.locked().get_mut(name) {
            session.is_renewed = true;
        }
    }

    pub fn end(&self, name: &str) {
        self.locked().remove(name);
    }

    /// A call that passes the library by, if it may.
    pub fn enter(&self, name: &Arc<str>, request: &RequestId) -> Option<Running<'_>> {
        let mut all = self.locked();
        let session = all.get_mut(name)?;
        let may = !session.is_renewed
            && session.heard.elapsed() < UNHEARD
            && !session.running.contains_key(request);
        let (sender, cancelled) = oneshot::channel();
        may.then(|| session.running.insert(request.clone(), sender))?;
        Some(Running { sessions: self, name: Arc::clone(name), request: request.clone(), cancelled })
    }

    /// Does nothing when there is no such call.
    pub fn cancel(&self, name: &str, request: &RequestId) {
        if let Some(session) = self.locked().get_mut(name) {
            session.running.remove(request);
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Arc<str>, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call, until it is dropped.
pub(super) struct Running<'a> {
    sessions: &'a Sessions,
    name: Arc<str>,
    request: RequestId,
    cancelled: oneshot::Receiver<()>,
}

impl Running<'_> {
    /// Ends when the host cancels the call, or its session is over.
    pub async fn cancelled(&mut self) {
        // Nothing is ever sent.
        let _ = (&mut self.cancelled).await;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut all = self.sessions.locked();
        // One that was cancelled has made room already, perhaps for another call with this id.
        if self.cancelled.try_recv() == Err(oneshot::error::TryRecvError::Empty)
            && let Some(session) = all.get_mut(&self.name)
        {
            session.running.remove(&self.request);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(heard: Option<Instant>) -> (Sessions, Arc<str>) {
        let (sessions, name) = (Sessions::default(), Arc::from("mcp_1"));
        sessions.begin(&name);
        if let Some(heard) = heard {
            sessions.locked().get_mut(&name).unwrap().heard = heard;
        }
        (sessions, name)
    }

    #[test]
    fn a_call_of_a_session_that_the_library_knows_passes_it_by() {
        let (sessions, name) = with(None);
        let running = sessions.enter(&name, &RequestId::Number(1));
        assert!(running.is_some());
        assert!(sessions.enter(&name, &RequestId::Number(1)).is_none(), "the same request again");
        assert!(sessions.enter(&name, &RequestId::Number(2)).is_some());
        drop(running);
        assert!(sessions.enter(&name, &RequestId::Number(1)).is_some());
        assert!(sessions.enter(&Arc::from("mcp_2"), &RequestId::Number(1)).is_none());
        sessions.end(&name);
        assert!(sessions.enter(&name, &RequestId::Number(1)).is_none());
    }

    #[test]
    fn the_library_hears_of_a_session_now_and_then() {
        let (sessions, name) = with(Instant::now().checked_sub(UNHEARD));
        assert!(sessions.enter(&name, &RequestId::Number(1)).is_none());
        sessions.hear(&name);
        assert!(sessions.enter(&name, &RequestId::Number(1)).is_some());
    }

    #[test]
    fn a_session_with_a_newer_toolset_is_its_handlers() {
        let (sessions, name) = with(None);
        sessions.renew(&name);
        assert!(sessions.enter(&name, &RequestId::Number(1)).is_none());
    }

    #[tokio::test]
    async fn a_call_is_cancelled_by_its_host_or_with_its_session() {
        let (sessions, name) = with(None);
        let mut running = sessions.enter(&name, &RequestId::Number(1)).unwrap();
        let mut other = sessions.enter(&name, &RequestId::Number(2)).unwrap();
        sessions.cancel(&name, &RequestId::Number(1));
        running.cancelled().await;
        assert_eq!(other.cancelled.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        let mut again = sessions.enter(&name, &RequestId::Number(1)).unwrap();
        drop(running);
        assert_eq!(again.cancelled.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        sessions.end(&name);
        other.cancelled().await;
    }
}

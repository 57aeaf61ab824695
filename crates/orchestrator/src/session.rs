//! The life of a session: its start, its turns, its clients and its end. Its mode and toolset never change.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, watch};
use toolwright_capabilities::Client;
use toolwright_contract::{Mode, Principal};

use crate::deferred_results::DeferredResult;
use crate::orchestrator::Orchestrator;
use crate::session_state::{self, Event};
use crate::store::{
    self, Backend, Durability, SessionPage, SessionQuery, SessionRecord, SessionStatus, Spent,
};

/// The data that a session starts with.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Random when absent.
    pub id: Option<String>,
    pub client_id: String,
    pub principal: Principal,
    pub mode: Mode,
    /// `context.session.state` of handlers; an object.
    pub state: Map<String, Value>,
    /// Relaxed for a caller that acknowledges the session only after a committed change of it.
    pub durability: Durability,
}

/// The start of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub number: u64,
    /// The session as it is now.
    pub session: Arc<SessionRecord>,
    /// The pending message that a tool has set for this turn.
    pub message: Option<String>,
}

impl NewSession {
    /// A session of this mode, for this client.
    pub fn new(client_id: impl Into<String>, mode: Mode) -> Self {
        let client_id = client_id.into();
        let principal = Principal { id: client_id.clone(), org: None, roles: Vec::new() };
        let (state, durability) = (Map::new(), Durability::Committed);
        Self { id: None, client_id, principal, mode, state, durability }
    }

    pub(crate) fn record(self, toolset: String, now: i64, lifetime_ms: i64) -> SessionRecord {
        SessionRecord {
            id: self.id.unwrap_or_else(|| crate::ids::random_id("sess")),
            client_id: self.client_id,
            principal: self.principal,
            mode: self.mode,
            toolset,
            turn: 0,
            spent: Spent::default(),
            state: Value::Object(self.state),
            remembered: Vec::new(),
            status: SessionStatus::Active,
            created_at: now,
            expires_at: now.saturating_add(lifetime_ms),
            revision: 0,
        }
    }
}

impl Orchestrator {
    /// Starts a session with the current toolset, which it keeps.
    pub fn create_session(&self, new: NewSession) -> BoxFuture<'_, store::Result<Arc<SessionRecord>>> {
        Box::pin(async move {
            // Held until the session is stored: a toolset that is in use is not unloaded.
            let (_runtime, toolset) = self.stored_current_version().await?;
            let durability = new.durability;
            let record = new.record(toolset, self.0.clock.now(), self.0.policy.session_ms);
            self.0.store.create_session(record.clone(), durability).await?;
            Ok(Arc::new(record))
        })
    }

    /// The session as it is now: one that has expired is not active, even if no sweep has closed it yet.
    pub fn session<'a>(&'a self, id: &'a str) -> BoxFuture<'a, store::Result<Option<Arc<SessionRecord>>>> {
        Box::pin(async move {
            let Some(session) = self.0.store.session(id).await? else { return Ok(None) };
            let status = session.status_at(self.0.clock.now());
            if status == session.status {
                return Ok(Some(session));
            }
            Ok(Some(Arc::new(SessionRecord { status, ..(*session).clone() })))
        })
    }

    /// A page of the sessions as they are now, newest first.
    pub fn sessions<'a>(&'a self, query: SessionQuery<'a>) -> BoxFuture<'a, store::Result<SessionPage>> {
        Box::pin(async move {
            let mut page = self.0.store.session_page(query).await?;
            let now = self.0.clock.now();
            for session in &mut page.sessions {
                let status = session.status_at(now);
                if status != session.status {
                    Arc::make_mut(session).status = status;
                }
            }
            Ok(page)
        })
    }

    /// Adds a client that receives messages and progress of a session, beside those that it has.
    pub fn attach(&self, session: &str, client: Arc<dyn Client>) {
        self.0.clients.attach(session, client);
    }

    /// Removes this client of a session.
    pub fn detach_client(&self, session: &str, client: &Arc<dyn Client>) {
        self.0.clients.detach(session, client);
    }

    /// Removes the clients of a session.
    pub fn detach(&self, session: &str) {
        self.0.clients.detach_all(session);
    }

    /// Starts a turn, with a new budget.
    pub fn begin_turn<'a>(&'a self, session: &'a str) -> BoxFuture<'a, store::Result<Turn>> {
        Box::pin(async move {
            let mut record = self.0.store.begin_turn(session).await?;
            self.0.session_watches.wake(session);
            // The turn before has ended, also where no transport has reported it.
            if record.is_ending() {
                self.apply_event(session, Event::TurnFinished).await?;
            }
            let has_message = record.state.get("pendingMessage").is_some();
            let message =
                if has_message { self.change(session, session_state::take_message).await? } else { None };
            if record.is_ending() || has_message {
                let changed = self.session(session).await?;
                record = changed.ok_or_else(|| store::Error::NoSession(session.to_owned()))?;
            }
            Ok(Turn { number: record.turn, session: record, message })
        })
    }

    /// Applies an event of the conversation to the session's state. True when it ends the session.
    pub fn apply_event<'a>(&'a self, session: &'a str, event: Event) -> BoxFuture<'a, store::Result<bool>> {
        Box::pin(async move {
            let has_ended =
                self.change(session, |session| session_state::apply_event(session, event)).await?;
            if has_ended {
                self.detach(session);
            }
            Ok(has_ended)
        })
    }

    pub fn end_session<'a>(&'a self, session: &'a str) -> BoxFuture<'a, store::Result<()>> {
        Box::pin(async move {
            self.change(session, |session| session.status = SessionStatus::Ended).await?;
            self.detach(session);
            Ok(())
        })
    }

    /// Closes sessions and confirmation requests that have expired, and frees what is no longer used. To be called
    /// every few seconds.
    pub fn sweep(&self) -> BoxFuture<'_, store::Result<()>> {
        Box::pin(async move {
            let now = self.0.clock.now();
            let swept = self.0.store.sweep(now).await?;
            for request in &swept.confirmations {
                self.expire(request).await;
            }
            self.0.deferred_results.sweep();
            self.0.session_watches.sweep();
            self.detach_ended(now).await?;
            self.unload_unused().await
        })
    }

    /// The results of calls that waited for approval, of all sessions. A subscriber that is too slow gets the number of
    /// missed results (`RecvError::Lagged`), and reads them with [`Self::recorded_envelope`].
    pub fn deferred_results(&self) -> broadcast::Receiver<DeferredResult> {
        self.0.deferred_results.subscribe(None)
    }

    /// As [`Self::deferred_results`], of one session.
    pub fn deferred_results_for(&self, session: &str) -> broadcast::Receiver<DeferredResult> {
        self.0.deferred_results.subscribe(Some(session))
    }

    /// Reports each change of a session that this process makes.
    pub fn session_changes(&self, session: &str) -> watch::Receiver<()> {
        self.0.session_watches.subscribe(session)
    }

    /// Removes the clients of sessions that have ended.
    async fn detach_ended(&self, now: i64) -> store::Result<()> {
        let attached = self.0.clients.sessions();
        if !attached.is_empty() {
            let inactive = self.0.store.inactive_sessions(&attached, now).await?;
            inactive.iter().for_each(|session| self.detach(session));
        }
        Ok(())
    }

    /// Changes a session by a pure function, and tries again when another change was faster.
    pub(crate) async fn change<T>(
        &self,
        id: &str,
        change: impl Fn(&mut SessionRecord) -> T,
    ) -> store::Result<T> {
        loop {
            let session = self.0.store.session(id).await?;
            let before = session.ok_or_else(|| store::Error::NoSession(id.to_owned()))?;
            let mut after = (*before).clone();
            let outcome = change(&mut after);
            if after == *before {
                return Ok(outcome);
            }
            if self.0.store.update_session(&after).await? {
                self.0.session_watches.wake(id);
                return Ok(outcome);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An active text session of a member of staff.
    pub(crate) fn session(id: &str) -> SessionRecord {
        let mut new = NewSession::new("client", Mode::Text);
        new.id = Some(id.to_owned());
        new.principal = Principal {
            id: "mira".to_owned(),
            org: Some("studio".to_owned()),
            roles: vec!["staff".to_owned()],
        };
        new.record("1.0.0".to_owned(), 0, 1000)
    }
}

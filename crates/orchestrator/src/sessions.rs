//! The life of a session, and of the toolset that it keeps.

use std::sync::{Arc, PoisonError};

use tokio::sync::{broadcast, watch};
use toolwright_capabilities::Client;

use crate::block;
use crate::deliveries::Delivery;
use crate::orchestrator::{Orchestrator, key_of};
use crate::runtime::Runtime;
use crate::session::NewSession;
use crate::state::{self, Event};
use crate::store::{self, Backend, SessionRecord, SessionStanding};

/// The beginning of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub number: u64,
    /// A message that a tool left for this moment.
    pub message: Option<String>,
}

impl Orchestrator {
    /// Begins a session with the current toolset, which it keeps.
    pub async fn create_session(&self, new: NewSession) -> store::Result<Arc<SessionRecord>> {
        // Held until the session is known: a toolset that somebody holds is not unloaded.
        let runtime = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner).current.clone();
        let record = new.record(key_of(&runtime), self.0.clock.now(), self.0.policy.session_ms);
        self.0.store.create_session(record.clone()).await?;
        Ok(Arc::new(record))
    }

    /// The session as it is: one whose time is over is not active any more, whether or not anyone has noticed.
    pub async fn session(&self, id: &str) -> store::Result<Option<Arc<SessionRecord>>> {
        let Some(session) = block::shown(self.0.store.session(id).await?) else { return Ok(None) };
        let standing = session.standing_at(self.0.clock.now());
        if standing == session.standing {
            return Ok(Some(session));
        }
        Ok(Some(Arc::new(SessionRecord { standing, ..(*session).clone() })))
    }

    /// Where messages and progress of a session go from now on.
    pub fn attach(&self, session: &str, client: Arc<dyn Client>) {
        self.0.clients.write().unwrap_or_else(PoisonError::into_inner).insert(session.to_owned(), client);
    }

    /// Lets a session's client go, unless another has taken its place.
    pub fn detach_this(&self, session: &str, client: &Arc<dyn Client>) {
        let mut clients = self.0.clients.write().unwrap_or_else(PoisonError::into_inner);
        if clients.get(session).is_some_and(|attached| Arc::ptr_eq(attached, client)) {
            clients.remove(session);
        }
    }

    /// The client has gone away.
    pub fn detach(&self, session: &str) {
        self.0.clients.write().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// The user has said something: a new turn with a fresh budget.
    pub async fn begin_turn(&self, session: &str) -> store::Result<Turn> {
        let record = self.0.store.begin_turn(session, self.0.clock.now()).await?;
        // The turn before is over, also where no transport has said so.
        if record.is_ending() {
            self.notice(session, Event::TurnFinished).await?;
        }
        let waiting = record.state.get("pendingMessage").is_some();
        let message = if waiting { self.change(session, state::take_message).await? } else { None };
        Ok(Turn { number: record.turn, message })
    }

    /// Tells what happened in the conversation. True when it ends the session.
    pub async fn notice(&self, session: &str, event: Event) -> store::Result<bool> {
        let has_ended = self.change(session, |session| state::notice(session, event)).await?;
        if has_ended {
            self.detach(session);
        }
        Ok(has_ended)
    }

    /// Ends a session.
    pub async fn end_session(&self, session: &str) -> store::Result<()> {
        self.change(session, |session| session.standing = SessionStanding::Ended).await?;
        self.detach(session);
        Ok(())
    }

    /// Makes a newer toolset the one that sessions begin with. Those that have begun keep theirs, which is unloaded by
    /// [`Self::sweep`] once no session keeps it any more.
    pub fn install(&self, runtime: Runtime) {
        let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
        toolsets.current_version = key_of(&runtime);
        let version = toolsets.current_version.clone();
        toolsets.by_version.insert(version, runtime.clone());
        toolsets.current = runtime;
        drop(toolsets);
        self.0.installed.send_modify(|count| *count += 1);
    }

    /// Tells when another toolset was installed.
    pub fn installs(&self) -> watch::Receiver<u64> {
        self.0.installed.subscribe()
    }

    /// Lets time pass: sessions and questions whose time has come are closed, and what nobody needs any more is let go.
    /// To be called every few seconds.
    pub async fn sweep(&self) -> store::Result<()> {
        let now = self.0.clock.now();
        let swept = self.0.store.sweep(now).await?;
        for asked in &swept.questions {
            self.expire(asked).await;
        }
        self.0.deliveries.sweep();
        self.detach_over(now).await?;
        self.unload().await
    }

    /// The answers to calls that waited for a person, as they come, of all sessions. Whoever is too slow is told how many
    /// were missed (`RecvError::Lagged`), and finds them in the record: [`Self::recorded`].
    pub fn deliveries(&self) -> broadcast::Receiver<Delivery> {
        self.0.deliveries.of_all()
    }

    /// As [`Self::deliveries`], of one session.
    pub fn deliveries_for(&self, session: &str) -> broadcast::Receiver<Delivery> {
        self.0.deliveries.of(session)
    }

    /// Lets the clients of sessions go that are over, however they ended.
    async fn detach_over(&self, now: i64) -> store::Result<()> {
        let attached: Vec<String> = {
            let clients = self.0.clients.read().unwrap_or_else(PoisonError::into_inner);
            clients.keys().cloned().collect()
        };
        if !attached.is_empty() {
            self.0.store.over(&attached, now).await?.iter().for_each(|session| self.detach(session));
        }
        Ok(())
    }

    /// Lets the toolsets go that no session keeps any more, and no call uses.
    async fn unload(&self) -> store::Result<()> {
        let old: Vec<String> = {
            let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
            toolsets.unused().cloned().collect()
        };
        for version in old {
            if self.0.store.is_kept(&version).await? {
                continue;
            }
            let mut toolsets = self.0.toolsets.write().unwrap_or_else(PoisonError::into_inner);
            if toolsets.unused().any(|unused| *unused == version) {
                toolsets.by_version.remove(&version);
                drop(toolsets);
                tracing::info!(version, "a toolset was unloaded: no session keeps it any more");
            }
        }
        Ok(())
    }

    /// Changes a session by a pure function, again and again until nobody interferes.
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
            if after == *before || self.0.store.update_session(&after).await? {
                return Ok(outcome);
            }
        }
    }
}

//! The other doors to the corridor: a call of a session that was looked up already, a call that has a session of its own,
//! a call that a handler makes; and the moment when nothing is at work any more.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolwright_capabilities::Client;
use toolwright_contract::{Envelope, Mode, SideEffects};
use toolwright_registry::hex;

use crate::call::{Call, Caller};
use crate::confirm;
use crate::ids;
use crate::orchestrator::{Orchestrator, ToolCall, unshared};
use crate::recovery;
use crate::redact;
use crate::runtime::Runtime;
use crate::session::NewSession;
use crate::store::{self, Backend, Confirmation, SessionRecord};
use crate::trip::Keeping;

/// How often is looked whether work is done.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A call, and who hears of it while it runs: its progress and its messages.
#[derive(Debug, Clone)]
pub struct Heard {
    pub call: ToolCall,
    /// The session's client when absent.
    pub client: Option<Arc<dyn Client>>,
}

impl From<ToolCall> for Heard {
    fn from(call: ToolCall) -> Self {
        Self { call, client: None }
    }
}

impl Orchestrator {
    /// The toolset that sessions begin with.
    pub fn current(&self) -> Runtime {
        self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner).current.clone()
    }

    fn current_version(&self) -> (Runtime, String) {
        let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
        (toolsets.current.clone(), toolsets.current_version.clone())
    }

    /// The toolset that a session keeps, while it is loaded.
    pub fn runtime_of(&self, session: &SessionRecord) -> Option<Runtime> {
        self.runtime(&session.toolset)
    }

    /// Runs one call of a session that the caller has just looked up.
    pub async fn call_in(&self, session: Arc<SessionRecord>, call: impl Into<Heard>) -> Arc<Envelope> {
        let Heard { call, client } = call.into();
        match self.begin(Instant::now(), session, call, 0, None) {
            Ok(mut trip) => {
                trip.client = client;
                self.walk(trip).await
            }
            Err(envelope) => Arc::new(*envelope),
        }
    }

    /// Runs one call that has a session of its own.
    ///
    /// A call that may run again and asks nobody leaves its audit entry behind and nothing else: nobody could name its
    /// session. Any other is kept like every call, in a session that is found again by the call's id and its principal,
    /// so that a resend is recognised.
    pub async fn call_once(&self, new: NewSession, call: impl Into<Heard>) -> store::Result<Arc<Envelope>> {
        let started = Instant::now();
        let Heard { call, client } = call.into();
        let (current, version) = self.current_version();
        let spec = current.toolset().metadata(&call.tool);
        let leaves_nothing = spec.is_none_or(|spec| {
            spec.idempotent
                && spec.side_effects != SideEffects::Writes
                && spec.requires_confirmation.is_never()
        });
        if !leaves_nothing {
            return Box::pin(async {
                let session = self.own_session(new, &call).await?;
                Ok(self.call_in(session, Heard { call, client }).await)
            })
            .await;
        }
        let new = NewSession { id: new.id.or_else(|| Some(ids::passing())), ..new };
        let record = new.record(version, self.0.clock.now(), self.0.policy.session_ms);
        Ok(match self.begin(started, Arc::new(record), call, 0, None) {
            Ok(mut trip) => {
                trip.keeping = Keeping::Unstored;
                trip.client = client;
                self.walk(trip).await
            }
            Err(envelope) => Arc::new(*envelope),
        })
    }

    /// What the model is told of an envelope.
    pub fn for_model(&self, session: &SessionRecord, envelope: &Envelope) -> Value {
        self.told(session.mode, self.runtime(&session.toolset), envelope)
    }

    /// Whether the toolset that this session keeps is loaded: without it, the session can only look back.
    pub fn has_toolset_of(&self, session: &SessionRecord) -> bool {
        self.runtime(&session.toolset).is_some()
    }

    /// What the model is told of a call that had a session of its own.
    pub fn for_model_once(&self, mode: Mode, envelope: &Envelope) -> Value {
        self.told(mode, Some(self.current()), envelope)
    }

    /// The arguments of a question as a person may see them. Nothing, when it cannot be told what must be hidden.
    pub async fn shown_args(&self, asked: &Confirmation) -> store::Result<Value> {
        let Some(session) = self.0.store.session(&asked.session).await? else { return Ok(Value::Null) };
        let runtime = self.runtime(&session.toolset);
        let spec = runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(&asked.tool));
        Ok(spec.map_or(Value::Null, |spec| redact::redacted(&spec.json_schema, &asked.args)))
    }

    /// Waits until nothing is at work whose caller may have gone away. False when it takes longer than `patience`.
    pub async fn at_rest(&self, patience: Duration) -> bool {
        let give_up = Instant::now() + patience;
        while Arc::strong_count(&self.0.detached) > 1 {
            if Instant::now() >= give_up {
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        true
    }

    pub(crate) fn told(&self, mode: Mode, runtime: Option<Runtime>, envelope: &Envelope) -> Value {
        let is_wanted = self.0.policy.documentation_on_validation && !envelope.is_ok();
        let runtime = runtime.filter(|_| is_wanted);
        let documentation = runtime.and_then(|runtime| runtime.toolset().documentation(&envelope.meta.tool));
        recovery::answer(envelope, mode, documentation.as_deref())
    }

    /// The session of a call that has one of its own: the same for the same id of the same principal.
    async fn own_session(&self, new: NewSession, call: &ToolCall) -> store::Result<Arc<SessionRecord>> {
        let Some(id) = &call.id else { return self.create_session(new).await };
        let mut hasher = Sha256::new();
        for part in [new.principal.org.as_deref().unwrap_or_default(), &new.principal.id, &new.client_id, id]
        {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let id = format!("own_{}", hex(&digest[..16]));
        if let Some(known) = self.session(&id).await? {
            return Ok(known);
        }
        match self.create_session(NewSession { id: Some(id.clone()), ..new }).await {
            Err(store::Error::Exists(_)) => self.session(&id).await?.ok_or(store::Error::NoSession(id)),
            created => created,
        }
    }

    /// A call that a handler makes: the same gates, another id.
    pub(crate) async fn nested(
        &self,
        parent: Arc<Call>,
        session: &SessionRecord,
        tool: &str,
        args: Value,
        id: String,
    ) -> Envelope {
        self.store_own(&parent).await;
        let call = ToolCall { id: Some(id), tool: tool.to_owned(), args };
        let mut envelope = unshared(self.call_at(&session.id, call, 0, Some(parent)).await);
        if let Err(failure) = &mut envelope.outcome
            && let Some(details) = &mut failure.details
        {
            // A handler must not be able to approve what it has called.
            confirm::without_token(details);
        }
        envelope
    }

    /// A handler that calls others needs a session that the store knows.
    async fn store_own(&self, parent: &Call) {
        let Caller::Of { session, keeping: Keeping::Unstored, .. } = &parent.caller else { return };
        match self.0.store.create_session((**session).clone()).await {
            Ok(()) | Err(store::Error::Exists(_)) => {}
            // The nested call will be told that there is no such session.
            Err(error) => tracing::error!("a session could not be kept: {error}"),
        }
    }
}

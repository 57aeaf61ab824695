//! The request of a caller: one call, its session, and everything in which callers differ. Plain data.

use std::sync::Arc;

use serde_json::Value;
use toolwright_capabilities::Client;
use toolwright_contract::{Failure, Principal};
use toolwright_engine::{Cancel, Host};

use crate::ids;
use crate::invocation::Invocation;
use crate::session::NewSession;
use crate::store::{ConfirmationRecord, SessionRecord, TaskRecord};

/// A call as a model or a client makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call; derived from turn, position, tool and arguments when absent.
    pub id: Option<String>,
    pub tool: String,
    pub args: Value,
}

impl ToolCall {
    /// Identifies tool and arguments, as [`ConfirmationRecord::digest`] does.
    pub fn digest(&self) -> [u8; 32] {
        ids::digest(&self.tool, &self.args)
    }
}

/// The session of a call.
#[derive(Debug, Clone)]
pub enum SessionRef {
    /// A stored session, read when the call starts.
    Id(String),
    /// A session that the caller has just read.
    Loaded(Arc<SessionRecord>),
    /// A session of this call alone.
    ///
    /// An idempotent call that writes nothing and never needs approval leaves only its audit entry behind. Any other
    /// call gets a stored session, found again by the call's id and its principal, so that a resend is replayed.
    Ephemeral(NewSession),
}

/// One request to run a tool: what [`Orchestrator::call`](crate::Orchestrator::call) takes.
#[derive(Clone)]
pub struct CallRequest {
    pub session: SessionRef,
    pub call: ToolCall,
    /// The present caller, whose roles count instead of those at the session's start; `None`: the session's principal.
    pub principal: Option<Arc<Principal>>,
    /// The call's position in the model's message, from 0.
    pub position: usize,
    /// Receives progress and messages instead of the session's client.
    pub client: Option<Arc<dyn Client>>,
    /// Cancels the call, and aborts `context.signal`.
    pub cancel: Option<Cancel>,
    /// Answers the handler's capability calls instead of the configured capabilities.
    ///
    /// A call with a host is a test of the handler: the arguments are validated and the handler runs once, in a session
    /// that is not stored. No other gate applies (no approval, rate limit or budget), nothing is retried, and intents
    /// are returned, but not applied.
    pub host: Option<Arc<dyn Host>>,
    /// A fixed time for the handler's clock, in milliseconds since 1970.
    pub now: Option<i64>,
    /// Why the caller cannot run the call: its arguments cannot be read, or there are too many calls. It ends as every
    /// refused call does, with an envelope and an audit entry.
    pub refusal: Option<Failure>,
    /// The invocation whose handler makes this call.
    pub(crate) parent: Option<Arc<Invocation>>,
    /// The approval that this call uses up.
    pub(crate) approval: Option<Arc<ConfirmationRecord>>,
    /// The task that this call runs. Its starting call was admitted.
    pub(crate) task: Option<Arc<TaskRecord>>,
}

impl CallRequest {
    pub fn new(session: impl Into<SessionRef>, call: ToolCall) -> Self {
        Self {
            session: session.into(),
            call,
            principal: None,
            position: 0,
            client: None,
            cancel: None,
            host: None,
            now: None,
            refusal: None,
            parent: None,
            approval: None,
            task: None,
        }
    }

    #[must_use]
    pub fn principal(self, principal: &Arc<Principal>) -> Self {
        Self { principal: Some(Arc::clone(principal)), ..self }
    }

    #[must_use]
    pub fn position(self, position: usize) -> Self {
        Self { position, ..self }
    }

    #[must_use]
    pub fn client(self, client: Arc<dyn Client>) -> Self {
        Self { client: Some(client), ..self }
    }

    #[must_use]
    pub fn cancel(self, cancel: Cancel) -> Self {
        Self { cancel: Some(cancel), ..self }
    }

    #[must_use]
    pub fn host(self, host: Arc<dyn Host>) -> Self {
        Self { host: Some(host), ..self }
    }

    #[must_use]
    pub fn now(self, now: i64) -> Self {
        Self { now: Some(now), ..self }
    }

    /// A call that is refused before its gates.
    #[must_use]
    pub fn refused(self, failure: Failure) -> Self {
        Self { refusal: Some(failure), ..self }
    }
}

impl std::fmt::Debug for CallRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = formatter.debug_struct("CallRequest");
        fields.field("session", &self.session).field("call", &self.call).finish_non_exhaustive()
    }
}

impl From<&str> for SessionRef {
    fn from(id: &str) -> Self {
        Self::Id(id.to_owned())
    }
}

impl From<&String> for SessionRef {
    fn from(id: &String) -> Self {
        Self::Id(id.clone())
    }
}

impl From<Arc<SessionRecord>> for SessionRef {
    fn from(session: Arc<SessionRecord>) -> Self {
        Self::Loaded(session)
    }
}

impl From<NewSession> for SessionRef {
    fn from(session: NewSession) -> Self {
        Self::Ephemeral(session)
    }
}

//! One call while it runs: what it was asked, who called it, what it asked for by function. Handlers of all engines
//! see it through [`Context`](crate::Context) and the guard.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Number, Value, json};
use toolwright_capabilities::Client;
use toolwright_contract::{Mode, ToolSpec};
use toolwright_engine::Cancel;
use toolwright_registry::toolset::Tool;

use crate::backing::Backing;
use crate::observe::Trace;
use crate::orchestrator::Orchestrator;
use crate::prepared::Prepared;
use crate::request::Session;
use crate::runtime::Runtime;
use crate::store::SessionRecord;
use crate::trip::Keeping;

/// No call takes longer, whatever its budget.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

pub(crate) struct Call {
    pub runtime: Runtime,
    pub prepared: Arc<Prepared>,
    pub execution_id: Arc<str>,
    pub caller: Caller,
    pub cancel: LateCancel,
    pub now: Option<i64>,
    pub deadline: Instant,
    /// What answers the handler's capabilities, behind the guard.
    pub backing: Backing,
    /// The call whose handler made this one.
    pub parent: Option<Arc<Call>>,
    /// Its span, if somebody watches: what its handler calls lies in it.
    pub trace: Option<Trace>,
    /// How often it was tried before.
    pub attempt: u32,
    /// Texts that must not reach a log.
    pub secrets: Arc<[String]>,
    asked: Mutex<Asked>,
}

/// What ends a call before its time, made when somebody first needs it: most calls are done before that.
pub(crate) type LateCancel = Arc<OnceLock<Cancel>>;

/// For whom a call runs.
pub(crate) enum Caller {
    /// A snapshot that was handed in.
    Given(Arc<Session>),
    /// A session of an orchestrator: what the handler calls goes through that.
    Of { orchestrator: Orchestrator, session: Arc<SessionRecord>, keeping: Keeping },
}

impl Caller {
    pub fn client_id(&self) -> &str {
        match self {
            Self::Given(session) => &session.client_id,
            Self::Of { session, .. } => &session.client_id,
        }
    }

    pub fn mode(&self) -> Mode {
        match self {
            Self::Given(session) => session.mode,
            Self::Of { session, .. } => session.mode,
        }
    }

    /// The state when the call came.
    pub fn state(&self) -> &Value {
        match self {
            Self::Given(session) => &session.state,
            Self::Of { session, .. } => &session.state,
        }
    }

    /// Calls of an orchestrator run in active sessions only.
    pub fn is_active(&self) -> bool {
        match self {
            Self::Given(session) => session.is_active,
            Self::Of { .. } => true,
        }
    }

    pub fn client(&self) -> Arc<dyn Client> {
        match self {
            Self::Given(session) => Arc::clone(&session.client),
            Self::Of { orchestrator, session, .. } => orchestrator.client(&session.id),
        }
    }
}

/// Which call it is.
pub(crate) struct Asking {
    pub execution_id: Arc<str>,
    pub cancel: LateCancel,
    pub now: Option<i64>,
}

/// What the handler asked for while it ran.
#[derive(Default)]
pub(crate) struct Asked {
    pub intents: Vec<Value>,
    /// Entries for the audit: event and data. Kept here when an orchestrator runs the call.
    pub entries: Vec<(String, Value)>,
    /// Members of `meta` that capabilities have added.
    pub notes: Vec<(&'static str, Value)>,
    pub nested: usize,
}

impl Call {
    pub fn new(
        runtime: Runtime,
        prepared: Arc<Prepared>,
        request: Asking,
        caller: Caller,
        backing: Backing,
        parent: Option<Arc<Call>>,
    ) -> Self {
        let own = Instant::now() + prepared.timeout;
        let deadline = parent.as_ref().map_or(own, |parent| own.min(parent.deadline));
        let Asking { execution_id, cancel, now } = request;
        let (attempt, secrets, asked) = (0, Arc::default(), Mutex::default());
        Self {
            runtime,
            prepared,
            execution_id,
            caller,
            cancel,
            now,
            deadline,
            backing,
            parent,
            trace: None,
            attempt,
            secrets,
            asked,
        }
    }

    pub fn spec(&self) -> &ToolSpec {
        &self.prepared.tool.spec
    }

    pub fn cancel(&self) -> &Cancel {
        self.cancel.get_or_init(Cancel::new)
    }

    pub fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools that led here, this one first.
    pub fn callers(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self), |call| call.parent.as_deref())
            .map(|call| call.spec().tool_id.as_str())
    }

    /// The plain data of `context`, as a handler in another language sees it.
    pub fn context(&self) -> Value {
        let (spec, caller) = (self.spec(), &self.caller);
        json!({
            "clientId": caller.client_id(),
            "mode": caller.mode(),
            "executionId": &*self.execution_id,
            "tool": { "id": spec.tool_id, "version": spec.version, "idempotent": spec.idempotent },
            "session": {
                "isActive": caller.is_active(),
                "toolsVersion": self.runtime.toolset().version,
                "mode": caller.mode(),
                "state": caller.state(),
            },
        })
    }
}

/// `timeoutMs`, or ten times the budget, and never more than the longest.
pub(crate) fn timeout(tool: &Tool) -> Duration {
    let given = tool.spec.timeout_ms.as_ref().and_then(Number::as_f64);
    let milliseconds = given.unwrap_or_else(|| tool.spec.latency_budget_ms.as_f64().unwrap_or(1000.0) * 10.0);
    Duration::try_from_secs_f64(milliseconds / 1000.0).map_or(LONGEST, |timeout| timeout.min(LONGEST))
}

//! One call while it runs: what it was asked, who called it, what it asked for by function. Handlers of all engines
//! see it through [`Context`](crate::Context) and the guard.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Number, Value, json};
use toolwright_contract::ToolSpec;
use toolwright_engine::Cancel;
use toolwright_registry::toolset::Tool;

use crate::backing::Backing;
use crate::orchestrator::Orchestrator;
use crate::prepared::Prepared;
use crate::request::{Request, Session};
use crate::runtime::Runtime;
use crate::store::SessionRecord;

/// No call takes longer, whatever its budget.
pub(crate) const LONGEST: Duration = Duration::from_secs(30);

pub(crate) struct Call {
    pub runtime: Runtime,
    pub prepared: Arc<Prepared>,
    pub execution_id: String,
    pub session: Arc<Session>,
    pub cancel: Cancel,
    pub now: Option<i64>,
    pub deadline: Instant,
    /// What answers the handler's capabilities, behind the guard.
    pub backing: Backing,
    /// The call whose handler made this one.
    pub parent: Option<Arc<Call>>,
    /// The session, when an orchestrator runs the call: what the handler calls goes through it.
    pub session_id: Option<String>,
    /// The session itself, while the store does not know it.
    pub unstored: Option<Arc<SessionRecord>>,
    /// How often it was tried before.
    pub attempt: u32,
    /// Texts that must not reach a log.
    pub secrets: Vec<String>,
    pub orchestrator: Option<Orchestrator>,
    asked: Mutex<Asked>,
}

/// What the handler asked for while it ran.
#[derive(Default)]
pub(crate) struct Asked {
    pub intents: Vec<Value>,
    /// Entries for the audit: event and data. Kept here when an orchestrator runs the call.
    pub entries: Vec<(String, Value)>,
    pub nested: usize,
}

impl Call {
    pub fn new(
        runtime: Runtime,
        prepared: Arc<Prepared>,
        request: Request,
        backing: Backing,
        parent: Option<Arc<Call>>,
    ) -> Self {
        let own = Instant::now() + timeout(&prepared.tool);
        let deadline = parent.as_ref().map_or(own, |parent| own.min(parent.deadline));
        let Request { execution_id, session, cancel, now, .. } = request;
        Self {
            runtime,
            prepared,
            execution_id,
            session,
            cancel,
            now,
            deadline,
            backing,
            parent,
            session_id: None,
            unstored: None,
            attempt: 0,
            secrets: Vec::new(),
            orchestrator: None,
            asked: Mutex::default(),
        }
    }

    pub fn spec(&self) -> &ToolSpec {
        &self.prepared.tool.spec
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
        let (spec, session) = (self.spec(), &self.session);
        json!({
            "clientId": session.client_id,
            "mode": session.mode,
            "executionId": self.execution_id,
            "tool": { "id": spec.tool_id, "version": spec.version, "idempotent": spec.idempotent },
            "session": {
                "isActive": session.is_active,
                "toolsVersion": self.runtime.toolset().version,
                "mode": session.mode,
                "state": session.state,
            },
        })
    }
}

/// `timeoutMs`, or ten times the budget, and never more than the longest.
fn timeout(tool: &Tool) -> Duration {
    let given = tool.spec.timeout_ms.as_ref().and_then(Number::as_f64);
    let milliseconds = given.unwrap_or_else(|| tool.spec.latency_budget_ms.as_f64().unwrap_or(1000.0) * 10.0);
    Duration::try_from_secs_f64(milliseconds / 1000.0).map_or(LONGEST, |timeout| timeout.min(LONGEST))
}

//! One attempt to run a handler: everything that the handler may see of its call, and the effects that it asks for.
//! Handlers of all engines reach it through [`Context`](crate::Context) and the host.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Number, Value, json};
use sha2::{Digest, Sha256};
use toolwright_capabilities::CallResources;
use toolwright_contract::{ErrorKind, ExecutionMode, Failure, Mode, SideEffects, Success, ToolSpec};
use toolwright_engine::{Cancel, Host, Level};
use toolwright_registry::hex;
use toolwright_registry::toolset::Tool;

use crate::admission::ClaimKind;
use crate::capability_calls::CapabilityCalls;
use crate::execution::Execution;
use crate::handler_outcome::{self, HandlerOutcome};
use crate::orchestrator::Orchestrator;
use crate::prepared_tool::PreparedTool;
use crate::redaction;
use crate::refusal::toolset_missing;
use crate::runtime::Runtime;
use crate::spans::Trace;
use crate::store::{SessionRecord, SessionStatus};

/// The longest timeout of a call, whatever its tool declares.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout of a task whose tool declares none, and the longest one.
const TASK_TIMEOUT: Duration = Duration::from_secs(10 * 60);
const MAX_TASK_TIMEOUT: Duration = Duration::from_secs(12 * 60 * 60);

/// Cancels a call. Created on first use: most calls end before that.
pub(crate) type LazyCancel = Arc<OnceLock<Cancel>>;

pub(crate) struct Invocation {
    pub orchestrator: Orchestrator,
    pub runtime: Runtime,
    pub prepared: Arc<PreparedTool>,
    pub session: Arc<SessionRecord>,
    pub claim: ClaimKind,
    pub execution_id: Arc<str>,
    pub cancel: LazyCancel,
    /// A fixed time for the handler's clock.
    pub now: Option<i64>,
    pub deadline: Instant,
    /// The client and the hosts that the tool's capabilities may reach.
    pub scope: CallResources,
    /// Answers all capability calls, `callTool` included, in a test.
    pub stub: Option<Arc<dyn Host>>,
    /// The invocation whose handler made this call.
    pub parent: Option<Arc<Invocation>>,
    /// Its span, if an observer is set: the parent of the spans of nested calls.
    pub trace: Option<Trace>,
    /// How many attempts there were before.
    pub attempt: u32,
    /// Texts that must not reach a log.
    pub secrets: Arc<[String]>,
    effects: Mutex<HandlerEffects>,
}

/// The effects that the handler asks for while it runs.
#[derive(Default)]
pub(crate) struct HandlerEffects {
    pub intents: Vec<Value>,
    /// Entries for the audit log: event and data.
    pub audit_entries: Vec<(String, Value)>,
    /// Members of `meta` that capabilities add.
    pub meta: Vec<(&'static str, Value)>,
    /// How many tools it has called.
    pub nested_calls: usize,
    pub capability_calls: CapabilityCalls,
}

impl Invocation {
    pub fn new(
        orchestrator: &Orchestrator,
        execution: &Execution,
        prepared: &Arc<PreparedTool>,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let runtime = execution.runtime.clone().ok_or_else(toolset_missing)?;
        let client = execution.client.clone().unwrap_or_else(|| orchestrator.client(&execution.session.id));
        Ok(Self {
            orchestrator: orchestrator.clone(),
            runtime,
            prepared: Arc::clone(prepared),
            session: Arc::clone(&execution.session),
            claim: execution.claim,
            execution_id: Arc::clone(&execution.id),
            cancel: Arc::clone(&execution.cancel),
            now: execution.handler_now,
            deadline,
            scope: CallResources { client, allow: prepared.allow.clone() },
            stub: execution.host.clone(),
            parent: execution.parent.clone(),
            trace: execution.span.map(|span| span.own),
            attempt: execution.retries,
            secrets: Arc::clone(&execution.secrets),
            effects: Mutex::default(),
        })
    }

    pub fn spec(&self) -> &ToolSpec {
        &self.prepared.tool.spec
    }

    pub fn mode(&self) -> Mode {
        self.session.mode
    }

    /// False only in a test of a session that has ended: other calls need an active session.
    pub fn is_active(&self) -> bool {
        self.session.status == SessionStatus::Active
    }

    pub fn cancel(&self) -> &Cancel {
        self.cancel.get_or_init(Cancel::new)
    }

    pub fn effects(&self) -> MutexGuard<'_, HandlerEffects> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools that led here, this one first.
    pub fn call_chain(&self) -> impl Iterator<Item = &str> {
        std::iter::successors(Some(self), |invocation| invocation.parent.as_deref())
            .map(|invocation| invocation.spec().tool_id.as_str())
    }

    /// The plain data of `context`, as a handler in another language sees it.
    pub fn context(&self) -> Value {
        let (spec, session) = (self.spec(), &self.session);
        json!({
            "clientId": session.client_id,
            "mode": session.mode,
            "executionId": &*self.execution_id,
            "idempotencyKey": self.idempotency_key(),
            "tool": { "id": spec.tool_id, "version": spec.version, "idempotent": spec.idempotent },
            "session": {
                "isActive": self.is_active(),
                "toolsVersion": self.runtime.toolset().version,
                "mode": session.mode,
                "state": session.state,
            },
        })
    }

    /// Names this call to other services, which know nothing of sessions: the ids of calls are unique only within one.
    pub fn idempotency_key(&self) -> String {
        let scope = &self.session.id;
        let mut hasher = Sha256::new();
        hasher.update((scope.len() as u64).to_le_bytes());
        hasher.update(scope);
        hasher.update(&*self.execution_id);
        hex(&hasher.finalize())
    }

    /// Whether the tool declares that it writes.
    pub fn writes(&self) -> bool {
        self.spec().side_effects == SideEffects::Writes
    }

    /// Checks the handler's data against the tool's `output` schema. The detail says where it does not match.
    pub fn check_output(&self, success: Success) -> HandlerOutcome {
        match &self.prepared.output {
            Some(output) if !output.is_valid(&success.data) => {
                let message = "The tool returned data that does not match its `output` schema.";
                let failure = Failure::new(ErrorKind::Internal, message);
                let problems = handler_outcome::output_problems(output, &success.data);
                HandlerOutcome {
                    outcome: Err(Failure { partial_side_effects: self.writes(), ..failure }),
                    detail: Some(format!(
                        "the handler's data does not match its `output` schema: {problems}"
                    )),
                }
            }
            _ => HandlerOutcome { outcome: Ok(success), detail: None },
        }
    }

    /// Logs why the handler failed: in a test to the test's report, otherwise to the log.
    pub fn log_detail(&self, mut detail: String) {
        redaction::scrub(&mut detail, &self.secrets);
        match &self.stub {
            Some(stub) => stub.console(Level::Error, detail),
            None => {
                let (tool, execution_id) = (&self.spec().tool_id, &*self.execution_id);
                tracing::error!(tool, execution_id, "{detail}");
            }
        }
    }
}

/// `timeoutMs`, or ten times the latency budget, limited to [`MAX_TIMEOUT`]. Tools that run in the background have
/// limits of their own.
pub(crate) fn timeout(tool: &Tool) -> Duration {
    let declared = tool.spec.timeout_ms.as_ref().and_then(Number::as_f64);
    let within = |milliseconds: f64, max: Duration| {
        Duration::try_from_secs_f64(milliseconds / 1000.0).map_or(max, |timeout| timeout.min(max))
    };
    if tool.spec.execution == Some(ExecutionMode::Background) {
        return declared.map_or(TASK_TIMEOUT, |milliseconds| within(milliseconds, MAX_TASK_TIMEOUT));
    }
    let budget = || tool.spec.latency_budget_ms.as_f64().unwrap_or(1000.0) * 10.0;
    within(declared.unwrap_or_else(budget), MAX_TIMEOUT)
}

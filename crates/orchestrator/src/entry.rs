//! The one entry of every call, whatever the transport:
//!
//! ```text
//! resolve → replay → admit (gates) → seat → claim → run (deadline, retry) → settle (intents, record) → finish
//! ```
//! Rare branches are boxed to keep the future small: a server holds one for each connection. The futures of public
//! functions are boxed too, so that their code is compiled here, and not again in every crate that awaits them.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use futures_util::future::{BoxFuture, join_all};
use serde_json::Map;
use toolwright_contract::{Envelope, ErrorKind, ExecutionMode, Failure, Mode, Principal, SideEffects};
use toolwright_engine::Cancel;
use toolwright_registry::hex;

use crate::admission::{Admission, ClaimKind};
use crate::describe::{DESCRIBE, describe};
use crate::execution::{Execution, replayed};
use crate::finish::ExecutionEnd;
use crate::gate::CallRates;
use crate::ids;
use crate::in_flight::{self, CallSlot, EnterOutcome, ResultReceiver};
use crate::invocation::{Invocation, LazyCancel};
use crate::orchestrator::Orchestrator;
use crate::refusal::{execution_id_conflict, store_unavailable, unknown_session};
use crate::request::{CallRequest, SessionRef, ToolCall};
use crate::runtime::Runtime;
use crate::session::NewSession;
use crate::spans::Span;
use crate::steps::{CallStep, StepTimer};
use crate::store::{self, Backend, ConfirmationRecord, SessionRecord};

/// Ids of callers and names of tools are stored, so their length is limited.
const MAX_ID_BYTES: usize = 256;

impl Orchestrator {
    /// Runs one call. The result is always an envelope, which the store may share.
    pub fn call(&self, request: CallRequest) -> BoxFuture<'_, Arc<Envelope>> {
        Box::pin(async move {
            let execution = self.resolve(request).await;
            self.execute(execution).await
        })
    }

    /// Runs the calls of one model message in this session: concurrently when none of them writes, otherwise in order.
    /// The results have the order of the calls. Each is also given to `report`, with its index, as soon as it is there.
    pub fn calls<'a>(
        &'a self,
        session: &'a SessionRecord,
        requests: Vec<CallRequest>,
        report: impl Fn(usize, &Arc<Envelope>) + Send + Sync + 'a,
    ) -> BoxFuture<'a, Vec<Arc<Envelope>>> {
        Box::pin(async move {
            let toolset = self.load_runtime(&session.toolset).await.ok().flatten();
            let writes = |request: &CallRequest| {
                let spec =
                    toolset.as_ref().and_then(|runtime| runtime.toolset().metadata(&request.call.tool));
                let spec = spec.filter(|_| request.refusal.is_none());
                spec.is_some_and(|spec| spec.side_effects == SideEffects::Writes)
            };
            let in_order = requests.iter().any(writes);
            let call = async |(position, request): (usize, CallRequest)| {
                let envelope = self.call(request).await;
                report(position, &envelope);
                envelope
            };
            let requests = requests.into_iter().enumerate();
            if in_order {
                let mut results = Vec::with_capacity(requests.len());
                for request in requests {
                    results.push(call(request).await);
                }
                return results;
            }
            join_all(requests.map(call)).await
        })
    }

    /// The session for a call that names none: ephemeral or stored, as [`SessionRef::Ephemeral`] says. Only for callers
    /// that report a failing store differently from a failed call.
    pub fn session_for<'a>(
        &'a self,
        new: NewSession,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, store::Result<SessionRef>> {
        Box::pin(async move {
            if leaves_no_record(&self.current(), &call.tool) {
                return Ok(SessionRef::Ephemeral(new));
            }
            Box::pin(self.own_session(new, call)).await.map(SessionRef::Loaded)
        })
    }

    /// Finds the session and its toolset, and opens the execution: its id, start and span. One that cannot run has its
    /// refusal.
    async fn resolve(&self, request: CallRequest) -> Box<Execution> {
        let started = Instant::now();
        let CallRequest { session, mut call, principal, position, client, cancel, host, now, .. } = request;
        let CallRequest { mut refusal, parent, approval, task, .. } = request;
        if parent.is_none() && call.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_ID_BYTES) {
            call.id = None;
            refusal = refusal.or_else(|| Some(invalid_id()));
        }
        let keeps_record = host.is_none() && refusal.is_none();
        let resolved = self.resolve_session(session, &call, keeps_record).await;
        let ResolvedSession { session, runtime, claim, refusal: unusable } = resolved;
        let ToolCall { id, mut tool, args } = call;
        // No tool has such a long name, and the audit log stores it.
        truncate(&mut tool);
        // An approval belongs to the call as it was made; its arguments may have been edited since.
        let digest = approval.as_ref().map_or_else(|| ids::digest(&tool, &args), |approval| approval.digest);
        let id = id.unwrap_or_else(|| ids::derived_execution_id(session.turn, position, &digest)).into();
        let trace = parent.as_ref().and_then(|parent| parent.trace);
        Box::new(Execution {
            started,
            now: self.0.clock.now(),
            session: with_caller(session, principal.as_deref(), parent.as_deref(), approval.as_deref()),
            claim,
            runtime,
            tool,
            id,
            digest,
            args,
            prepared: None,
            redacted_digest: None,
            secrets: Arc::default(),
            approval,
            task,
            begun_task: None,
            cancel: own_cancel(cancel, parent.as_deref()),
            parent,
            client,
            host,
            handler_now: now,
            refusal: refusal.or(unusable),
            span: self.0.observer.as_ref().map(|_| Span::begin(trace)),
            more_meta: Map::new(),
            permit: None,
            retries: 0,
            handler_entries: Vec::new(),
            is_charged: false,
            rates: CallRates::default(),
            lease: 0,
            steps: StepTimer::new(CallStep::Resolve, started),
            recorded_args: None,
        })
    }

    /// The session of a call, its toolset if there is one, and how the call is claimed.
    async fn resolve_session(
        &self,
        session: SessionRef,
        call: &ToolCall,
        keeps_record: bool,
    ) -> ResolvedSession {
        let session = match session {
            SessionRef::Loaded(session) => session,
            SessionRef::Id(mut id) => match self.0.store.session(&id).await {
                Ok(Some(session)) => session,
                missing => {
                    truncate(&mut id);
                    let stand_in = NewSession { id: Some(id), ..NewSession::new("", Mode::Text) };
                    let refusal = missing.map_or_else(store_unavailable, |_| unknown_session());
                    return ResolvedSession { refusal: Some(refusal), ..self.resolve_ephemeral(stand_in) };
                }
            },
            SessionRef::Ephemeral(new) => {
                if !keeps_record || leaves_no_record(&self.current(), &call.tool) {
                    return self.resolve_ephemeral(new);
                }
                match Box::pin(self.own_session(new.clone(), call)).await {
                    Ok(session) => session,
                    Err(error) => {
                        let refusal = Some(store_unavailable(error));
                        return ResolvedSession { refusal, ..self.resolve_ephemeral(new) };
                    }
                }
            }
        };
        let claim = if keeps_record { ClaimKind::Stored } else { ClaimKind::Ephemeral };
        let (runtime, refusal) = match self.load_runtime(&session.toolset).await {
            Ok(runtime) => (runtime, None),
            Err(error) => (None, Some(store_unavailable(error))),
        };
        ResolvedSession { session, runtime, claim, refusal }
    }

    /// A session of one call, which is not stored. It has the current toolset.
    fn resolve_ephemeral(&self, new: NewSession) -> ResolvedSession {
        let (current, version) = self.current_version();
        let id = new.id.or_else(|| Some(ids::random_id("own")));
        let session = NewSession { id, ..new }.record(version, self.0.clock.now(), self.0.policy.session_ms);
        ResolvedSession {
            session: Arc::new(session),
            runtime: Some(current),
            claim: ClaimKind::Ephemeral,
            refusal: None,
        }
    }

    /// The stored session of a call that names none: the same for the same call id of the same principal.
    async fn own_session(&self, new: NewSession, call: &ToolCall) -> store::Result<Arc<SessionRecord>> {
        let Some(id) = &call.id else { return self.create_session(new).await };
        let org = new.principal.org.as_deref().unwrap_or_default();
        let digest = ids::hash_of_parts([org, &new.principal.id, &new.client_id, id]);
        let id = format!("own_{}", hex(&digest[..16]));
        if let Some(known) = self.session(&id).await? {
            return Ok(known);
        }
        match self.create_session(NewSession { id: Some(id.clone()), ..new }).await {
            Err(store::Error::Exists(_)) => self.session(&id).await?.ok_or(store::Error::NoSession(id)),
            created => created,
        }
    }

    /// Takes a resolved execution to its envelope.
    async fn execute(&self, mut execution: Box<Execution>) -> Arc<Envelope> {
        if let Some(refusal) = execution.refusal.take() {
            return Box::pin(self.refuse(&execution, refusal)).await;
        }
        if execution.tool == DESCRIBE {
            let outcome = describe(self, &execution);
            return Box::pin(self.finish_without_run(
                &execution,
                execution.envelope(outcome),
                ExecutionEnd::Described,
            ))
            .await;
        }
        // An ephemeral execution cannot be sent twice.
        let mut slot = None;
        if execution.claim == ClaimKind::Stored {
            match self.enter(&mut execution).await {
                Ok(entered) => slot = Some(entered),
                Err(envelope) => return envelope,
            }
        }
        let envelope = match self.replay_admit_claim(&mut execution).await {
            Ok(Admission::Claimed(prepared)) => return self.run(execution, prepared, slot).await,
            Ok(Admission::Unconfirmed(prepared)) => {
                return self.create_confirmation_request(execution, prepared, slot).await;
            }
            Ok(Admission::Recorded(envelope)) => {
                Box::pin(self.finish_without_run(&execution, replayed(&envelope), ExecutionEnd::Replayed))
                    .await
            }
            Err(failure) => Box::pin(self.refuse(&execution, failure)).await,
        };
        if let Some(slot) = slot {
            slot.finish(&envelope);
        }
        envelope
    }

    /// Takes the slot of this execution id in this process. While another call runs with the id, waits for its result.
    async fn enter(&self, execution: &mut Execution) -> Result<CallSlot, Arc<Envelope>> {
        loop {
            let entered = self.0.in_flight.enter(&execution.session.id, &execution.id, execution.digest);
            match entered {
                EnterOutcome::First(slot) => return Ok(slot),
                EnterOutcome::Running { is_same_call, result } => {
                    Box::pin(self.wait_for_running(execution, is_same_call, result)).await?;
                }
            }
        }
    }

    /// Waits for another call with this execution id, and replays its result if it is the same call. Returns `Ok` when
    /// this one may take its slot.
    async fn wait_for_running(
        &self,
        execution: &mut Execution,
        is_same_call: bool,
        result: ResultReceiver,
    ) -> Result<(), Arc<Envelope>> {
        execution.steps.begin(CallStep::Wait);
        // If the store says that the id belongs to us, the other call will get CONFLICT.
        if !is_same_call && !self.is_recorded(execution).await {
            return Err(self.refuse(execution, execution_id_conflict()).await);
        }
        // An approved call does not replay the question that it answers.
        if let Some(envelope) = in_flight::wait(result).await
            && is_same_call
            && execution.approval.is_none()
        {
            return Err(self
                .finish_without_run(execution, replayed(&envelope), ExecutionEnd::Replayed)
                .await);
        }
        match self.reload_session(execution).await {
            Ok(()) => Ok(()),
            Err(failure) => Err(self.refuse(execution, failure).await),
        }
    }

    /// Finishes an execution that may not run.
    pub(crate) async fn refuse(&self, execution: &Execution, failure: Failure) -> Arc<Envelope> {
        let envelope =
            self.finish_without_run(execution, execution.envelope(Err(failure)), ExecutionEnd::Refused).await;
        if let Some(approval) = &execution.approval {
            self.close_approval(approval, execution, &envelope).await;
        }
        envelope
    }
}

/// The session of a call, and how the call is claimed in it.
struct ResolvedSession {
    session: Arc<SessionRecord>,
    runtime: Option<Runtime>,
    claim: ClaimKind,
    /// Why the call cannot run: the session or its toolset could not be read.
    refusal: Option<Failure>,
}

fn invalid_id() -> Failure {
    let message = format!("The call's id must have 1 to {MAX_ID_BYTES} bytes.");
    Failure::new(ErrorKind::Validation, message).suggest("Send a shorter id, or none.")
}

/// Shortens a name or an id that is too long to be stored.
fn truncate(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_ID_BYTES));
}

/// Cancels a call: its own handle, or that of the calling handler.
fn own_cancel(cancel: Option<Cancel>, parent: Option<&Invocation>) -> LazyCancel {
    match cancel {
        Some(cancel) => Arc::new(OnceLock::from(cancel)),
        None => parent.map(|parent| Arc::clone(&parent.cancel)).unwrap_or_default(),
    }
}

/// The session of a call, with the principal that makes it now: that of the request, of the calling handler, or of the
/// request that a person has approved.
fn with_caller(
    session: Arc<SessionRecord>,
    principal: Option<&Principal>,
    parent: Option<&Invocation>,
    approval: Option<&ConfirmationRecord>,
) -> Arc<SessionRecord> {
    if let Some(principal) = principal.or(parent.map(|parent| &parent.session.principal)) {
        return session.with_principal(principal);
    }
    match approval.and_then(|approval| approval.roles.clone()) {
        Some(roles) => {
            let principal = Principal { roles, ..session.principal.clone() };
            session.with_principal(&principal)
        }
        None => session,
    }
}

/// Whether a call of this tool needs no record beside its audit entry: it may run again, and never needs approval.
fn leaves_no_record(runtime: &Runtime, tool: &str) -> bool {
    runtime.toolset().metadata(tool).is_none_or(|spec| {
        let is_background = spec.execution == Some(ExecutionMode::Background);
        let may_repeat = spec.idempotent && spec.side_effects != SideEffects::Writes;
        may_repeat && !is_background && spec.requires_confirmation.is_never()
    })
}

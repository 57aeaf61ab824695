//! Answers to confirmation requests: runs an approved call, records a rejected one, and lists the pending requests.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Map, Value, json};
use toolwright_contract::{Envelope, ErrorKind, Failure, Meta, Principal};

use crate::argument_edits;
use crate::confirmation_token::{self, Approver, Error};
use crate::deferred_results::DeferredResult;
use crate::execution::Execution;
use crate::finish::{EndRecord, ExecutionEnd};
use crate::gate::{self, CallRates, GateInput, GateRefusal, role};
use crate::orchestrator::Orchestrator;
use crate::redaction;
use crate::refusal::unknown_outcome;
use crate::request::{CallRequest, SessionRef, ToolCall};
use crate::store::{
    self, ArgumentEdit, AuditEntry, Backend, Claim, ClaimOutcome, ConfirmationRecord, ConfirmationStatus,
    Decision, Durability, ExecutionStatus, PendingQuery, PendingScope, SessionRecord, SessionStatus,
    Settlement,
};

/// A page of the confirmation requests that wait for an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PendingPage {
    pub requests: Vec<Arc<ConfirmationRecord>>,
    /// The time and id after which the next page begins; `None` on the last page.
    pub next: Option<(i64, String)>,
}

impl Orchestrator {
    /// The confirmation requests that wait for an answer, of one session or of all, oldest first.
    pub async fn pending_confirmations(
        &self,
        session: Option<&str>,
    ) -> store::Result<Vec<Arc<ConfirmationRecord>>> {
        let scope = session.map_or(PendingScope::All, PendingScope::Session);
        Ok(self.pending_page(PendingQuery::all(scope)).await?.requests)
    }

    /// As [`Self::pending_confirmations`], in pages.
    pub fn pending_page<'a>(&'a self, query: PendingQuery<'a>) -> BoxFuture<'a, store::Result<PendingPage>> {
        Box::pin(async move {
            let now = self.0.clock.now();
            let mut requests = self.0.store.pending_confirmations(query).await?;
            let is_full = requests.len() >= query.limit;
            let next = requests.last().filter(|_| is_full).map(|last| (last.created_at, last.id.clone()));
            requests.retain(|request| request.expires_at > now);
            Ok(PendingPage { requests, next })
        })
    }

    /// The recorded envelope of an execution, for clients that have missed a deferred result. `None` when nothing is
    /// recorded, the call is still running, or its outcome is unknown.
    pub async fn recorded_envelope(
        &self,
        session: &str,
        execution: &str,
    ) -> store::Result<Option<Arc<Envelope>>> {
        let record = self.0.store.execution(session, execution).await?;
        Ok(record.and_then(|record| match record.status {
            ExecutionStatus::Finished(envelope) => Some(envelope),
            ExecutionStatus::Running | ExecutionStatus::InDoubt | ExecutionStatus::Abandoned => None,
        }))
    }

    /// Why an execution has no result and never gets one: the process that ran it was stopped. `None` for all others.
    pub async fn interruption_failure(
        &self,
        session: &str,
        execution: &str,
    ) -> store::Result<Option<Failure>> {
        let record = self.0.store.execution(session, execution).await?;
        let is_in_doubt = record.is_some_and(|record| matches!(record.status, ExecutionStatus::InDoubt));
        Ok(is_in_doubt.then(unknown_outcome))
    }

    /// Approves a call, possibly with edited arguments: it runs once, and its envelope is delivered.
    pub fn approve<'a>(
        &'a self,
        approver: &'a Approver<'a>,
        edited: Option<Value>,
    ) -> BoxFuture<'a, Result<Arc<Envelope>, Error>> {
        Box::pin(async move { self.approve_with(approver, edited, false).await })
    }

    /// As [`Self::approve`]; and if policy allows it, the session needs no approval for this tool any more.
    pub fn approve_and_remember<'a>(
        &'a self,
        approver: &'a Approver<'a>,
    ) -> BoxFuture<'a, Result<Arc<Envelope>, Error>> {
        Box::pin(async move { self.approve_with(approver, None, self.0.policy.may_remember).await })
    }

    async fn approve_with(
        &self,
        approver: &Approver<'_>,
        edited: Option<Value>,
        remember: bool,
    ) -> Result<Arc<Envelope>, Error> {
        let request = self.answerable(approver).await?;
        let principal = self.check_role(&request, approver).await?;
        let (args, redacted_args, edits) = match edited {
            Some(edited) => self.check_edited(&request, edited).await?,
            None => (request.args.clone(), request.redacted_args.clone(), Vec::new()),
        };
        let roles = principal.as_ref().map(|principal| principal.roles.clone());
        let decision = Decision::Approve { by: approver.record(), args, redacted_args, edits, roles };
        self.decide(request, decision, remember, principal).await
    }

    /// Refuses an approval by the session's principal if it has lost the role that the tool requires. Returns that
    /// principal: the call runs with the roles that it has now.
    async fn check_role(
        &self,
        request: &ConfirmationRecord,
        approver: &Approver<'_>,
    ) -> Result<Option<Principal>, Error> {
        let Some(principal) = approver.principal else { return Ok(None) };
        let Some(session) = self.0.store.session(&request.session).await? else { return Ok(None) };
        if !session.principal.is_same_as(principal) {
            return Ok(None);
        }
        let runtime = self.load_runtime(&session.toolset).await?;
        let spec = runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(&request.tool));
        if let Some(spec) = spec {
            role::check(spec, principal).map_err(|failure| Error::Forbidden(failure.message))?;
        }
        Ok(Some(principal.clone()))
    }

    /// Rejects a call: the rejection is recorded as its result, and delivered.
    pub fn reject<'a>(
        &'a self,
        approver: &'a Approver<'a>,
        reason: Option<String>,
    ) -> BoxFuture<'a, Result<Arc<Envelope>, Error>> {
        Box::pin(async move {
            let request = self.answerable(approver).await?;
            self.decide(request, Decision::Reject { by: approver.record(), reason }, false, None).await
        })
    }

    /// Records a decision and runs or declines the call, in a task of its own: an answer counts once it is recorded,
    /// even if the approver disconnects.
    async fn decide(
        &self,
        request: Arc<ConfirmationRecord>,
        decision: Decision,
        remember: bool,
        principal: Option<Principal>,
    ) -> Result<Arc<Envelope>, Error> {
        let this = self.clone();
        let task = tokio::spawn(async move {
            let _running = Arc::clone(&this.0.detached);
            let decided = this.0.store.decide_confirmation(&request.id, decision, this.0.clock.now()).await?;
            // Another approver was faster.
            let decided = decided.ok_or(Error::Answered)?;
            let session = this.session_of(&decided).await;
            let of_session = session.as_deref();
            if decided.status == ConfirmationStatus::Rejected {
                let envelope = this.deliver_declined(&decided, version_of(of_session));
                this.settle_without_run(&decided, &envelope, ExecutionEnd::Rejected, of_session).await?;
                return Ok(envelope);
            }
            this.finish_answer(&decided, ExecutionEnd::Approved, of_session).await;
            let envelope = this.run_approved(decided, session, principal).await;
            if remember && let Err(error) = this.store_remembered_approval(&request).await {
                tracing::error!("could not store that a tool needs no more approvals: {error}");
            }
            Ok(envelope)
        });
        task.await.unwrap_or_else(|panic| Err(store::Error::Unavailable(panic.to_string()).into()))
    }

    /// Stores that this session needs no approval for this tool any more.
    async fn store_remembered_approval(&self, request: &ConfirmationRecord) -> store::Result<()> {
        self.change(&request.session, |session| {
            if !session.remembered.contains(&request.tool) {
                session.remembered.push(request.tool.clone());
            }
        })
        .await
    }

    /// Runs approved calls that have not run, because the process stopped or the store failed. Returns their number.
    pub fn resume(&self) -> BoxFuture<'_, store::Result<usize>> {
        Box::pin(async move {
            let approved = self.0.store.approved_confirmations().await?;
            let in_flight = &self.0.in_flight;
            let mut runs = Vec::new();
            for approval in &approved {
                if !in_flight.is_running(&approval.session, &approval.execution)
                    && self.can_load(approval).await?
                {
                    runs.push(self.run_approved(Arc::clone(approval), None, None));
                }
            }
            Ok(join_all(runs).await.len())
        })
    }

    /// Whether the tool of an approved call can be loaded, or its session has ended, which closes the approval.
    /// Otherwise the log has the reason, and the call is not tried, since every attempt is audited.
    async fn can_load(&self, approval: &ConfirmationRecord) -> store::Result<bool> {
        let Some(session) = self.session(&approval.session).await? else { return Ok(false) };
        if session.status != SessionStatus::Active {
            return Ok(true);
        }
        let Some(runtime) = self.load_runtime(&session.toolset).await? else { return Ok(false) };
        match runtime.toolset().get(&approval.tool) {
            Some(tool) => Ok(runtime.prepared(tool).await.is_ok()),
            None => Ok(false),
        }
    }

    /// Delivers and audits that a confirmation request was not answered in time. The call may be made again.
    pub(crate) async fn expire(&self, request: &ConfirmationRecord) {
        let session = self.session_of(request).await;
        self.deliver_declined(request, version_of(session.as_deref()));
        self.finish_answer(request, ExecutionEnd::Expired, session.as_deref()).await;
    }

    /// Runs an approved call and delivers its envelope, unless the call runs later or has run elsewhere. The call
    /// has the roles of `principal`; without one, those of the request.
    async fn run_approved(
        &self,
        approval: Arc<ConfirmationRecord>,
        session: Option<Arc<SessionRecord>>,
        principal: Option<Principal>,
    ) -> Arc<Envelope> {
        let call = ToolCall {
            id: Some(approval.execution.clone()),
            tool: approval.tool.clone(),
            args: approval.args.clone(),
        };
        let session = session.map_or_else(|| SessionRef::from(&approval.session), SessionRef::Loaded);
        let request = CallRequest {
            approval: Some(Arc::clone(&approval)),
            principal: principal.map(Arc::new),
            ..CallRequest::new(session, call)
        };
        let envelope = self.call(request).await;
        let is_replayed = envelope.meta.more.contains_key("replayed");
        if !is_replayed && !self.is_still_approved(&approval).await {
            self.deliver(&approval, &envelope);
        }
        envelope
    }

    /// Whether the approval was not used up, so that [`Self::resume`] runs the call.
    async fn is_still_approved(&self, approval: &ConfirmationRecord) -> bool {
        let stored = self.0.store.confirmation(&approval.id).await;
        matches!(stored, Ok(Some(stored)) if stored.status == ConfirmationStatus::Approved)
    }

    fn deliver(&self, request: &ConfirmationRecord, envelope: &Arc<Envelope>) {
        self.0.deferred_results.send(&DeferredResult {
            session: request.session.clone(),
            execution_id: request.execution.clone(),
            envelope: Arc::clone(envelope),
        });
    }

    /// Delivers the failure of a call that was rejected, or not approved in time.
    fn deliver_declined(&self, request: &ConfirmationRecord, registry_version: &str) -> Arc<Envelope> {
        let meta = Meta {
            tool: request.tool.clone(),
            tool_version: Some(request.tool_version.clone()),
            registry_version: registry_version.to_owned(),
            duration: 0,
            execution_id: request.execution.clone(),
            more: Map::new(),
        };
        let envelope = Arc::new(Envelope { outcome: Err(confirmation_token::declined(request)), meta });
        self.deliver(request, &envelope);
        envelope
    }

    /// Claims and settles a call that must not run (any more): sent again, it is answered from the record.
    async fn settle_without_run(
        &self,
        request: &ConfirmationRecord,
        envelope: &Arc<Envelope>,
        end: ExecutionEnd,
        of_session: Option<&SessionRecord>,
    ) -> store::Result<()> {
        let (now, durability) = (self.0.clock.now(), Durability::Relaxed);
        let (session, execution): (_, Arc<str>) =
            (request.session.clone(), request.execution.as_str().into());
        let claim = Claim {
            session: session.clone(),
            execution: Arc::clone(&execution),
            tool: request.tool.as_str().into(),
            tool_version: request.tool_version.as_str().into(),
            digest: request.digest,
            // If this is interrupted, the call must not be claimed again.
            idempotent: false,
            charges: Vec::new(),
            rates: Vec::new(),
            confirmation: (end == ExecutionEnd::Closed).then(|| request.id.clone()),
            now,
            durability,
            lease: None,
        };
        let is_claimed = self.0.store.claim(claim).await? == ClaimOutcome::New;
        if !is_claimed && end == ExecutionEnd::Closed {
            // The id belongs to another call, which may still release it: the approval must not run then.
            return self.0.store.withdraw_approval(&request.id).await.map(drop);
        }
        let audit = self.answer_entry(request, end, of_session);
        let record = if is_claimed {
            let envelope = Arc::clone(envelope);
            let args = request.redacted_args.as_ref().unwrap_or(&request.args).to_string();
            let args = Some(args.into());
            EndRecord::Settle(Settlement { session, execution, envelope, args, audit, durability })
        } else {
            // Another call has taken the execution id. The answer is audited anyway.
            EndRecord::Append(audit)
        };
        self.finish(end, None, record).await.map(drop)
    }

    /// Closes the approval of a call that policy has refused, so that it does not run later. A call that could not run
    /// keeps it: the server was full, or the tool could not be loaded. [`Self::resume`] runs it when it can, while the
    /// session is active.
    pub(crate) async fn close_approval(
        &self,
        approval: &ConfirmationRecord,
        execution: &Execution,
        envelope: &Arc<Envelope>,
    ) {
        let may_pass = |failure: &Failure| {
            failure.kind == ErrorKind::Transient || failure.retryable || execution.could_not_load(failure)
        };
        if envelope.outcome.as_ref().is_err_and(may_pass) {
            return;
        }
        let session = Some(&*execution.session);
        if let Err(error) = self.settle_without_run(approval, envelope, ExecutionEnd::Closed, session).await {
            tracing::error!("could not close an approval: {error}");
        }
    }

    /// Audits the answer to a confirmation request, or that there was none.
    async fn finish_answer(
        &self,
        request: &ConfirmationRecord,
        end: ExecutionEnd,
        session: Option<&SessionRecord>,
    ) {
        let record = EndRecord::Append(self.answer_entry(request, end, session));
        // A failure is logged; the answer itself is stored already.
        let _ = self.finish(end, None, record).await;
    }

    fn answer_entry(
        &self,
        request: &ConfirmationRecord,
        end: ExecutionEnd,
        session: Option<&SessionRecord>,
    ) -> AuditEntry {
        let mut data = json!({ "confirmation": request.id, "by": request.decided_by });
        if request.is_edited {
            data["edited"] = true.into();
        }
        if let Some(reason) = &request.reason {
            data["reason"] = reason.as_str().into();
        }
        AuditEntry {
            at: self.0.clock.now(),
            event: end.event().to_owned(),
            session: request.session.clone(),
            client_id: request.client_id.clone(),
            tool: request.tool.clone(),
            tool_version: request.tool_version.clone(),
            registry_version: version_of(session).to_owned(),
            execution_id: request.execution.clone(),
            outcome: end.event().to_owned(),
            data,
            principal: session.map(|session| session.principal.id.clone()).unwrap_or_default(),
            org: session.and_then(|session| session.principal.org.clone()),
            approver: request.approver.clone(),
            edits: request.edits.clone(),
            // The call's own entry has the digest; here it would cover arguments that must not be stored.
            ..AuditEntry::default()
        }
    }

    /// The session of a confirmation request; `None` if it does not exist or the store fails.
    async fn session_of(&self, request: &ConfirmationRecord) -> Option<Arc<SessionRecord>> {
        self.0.store.session(&request.session).await.ok().flatten()
    }

    /// The confirmation request of this approver, if they may answer it.
    async fn answerable(&self, approver: &Approver<'_>) -> Result<Arc<ConfirmationRecord>, Error> {
        let (id, _) = confirmation_token::split_token(approver.token);
        let request = self.0.store.confirmation(id).await?;
        let request = request.ok_or(Error::Refused)?;
        confirmation_token::check_answer(&request, approver, self.0.clock.now())?;
        Ok(request)
    }

    /// Validates and clamps edited arguments. Returns them, their redacted form if they contain secrets, and the edits.
    async fn check_edited(
        &self,
        request: &ConfirmationRecord,
        mut edited: Value,
    ) -> Result<(Value, Option<Value>, Vec<ArgumentEdit>), Error> {
        let session = self.0.store.session(&request.session).await?.ok_or(Error::Refused)?;
        let runtime = self.load_runtime(&session.toolset).await?.ok_or(Error::Refused)?;
        let tool = runtime.toolset().get(&request.tool).ok_or(Error::Refused)?;
        let prepared = runtime.prepared(tool).await.map_err(|_| Error::Refused)?;
        redaction::restore(&mut edited, &request.args);
        let mut input = GateInput {
            session: &session,
            prepared: &prepared,
            policy: &self.0.policy,
            rules: &self.0.rules,
            now: self.0.clock.now(),
            is_approved: true,
            is_charged: false,
            args: &mut edited,
            clamped: Map::new(),
            rates: CallRates::default(),
        };
        match gate::check(gate::OF_EDITED_ARGUMENTS, &mut input) {
            Ok(()) => {
                let schema = &prepared.tool.spec.json_schema;
                let redacted_args = prepared.has_secrets.then(|| redaction::redacted(schema, &edited));
                let edits = argument_edits::between(schema, &request.args, &edited);
                Ok((edited, redacted_args, edits))
            }
            Err(GateRefusal::Deny(failure)) => Err(Error::Edited(failure.message)),
            Err(GateRefusal::Confirm) => Err(Error::Refused),
        }
    }
}

fn version_of(session: Option<&SessionRecord>) -> &str {
    session.map(SessionRecord::registry_version).unwrap_or_default()
}

//! How a call that needs approval becomes a confirmation request.

use std::sync::Arc;

use toolwright_contract::{Envelope, Failure};

use crate::confirmation_token::{self, NewToken};
use crate::execution::Execution;
use crate::in_flight::CallSlot;
use crate::orchestrator::Orchestrator;
use crate::prepared_tool::PreparedTool;
use crate::redaction;
use crate::refusal::{approval_already_used, execution_id_conflict, store_unavailable, too_many_pending};
use crate::run::ContinueWhenDropped;
use crate::steps::CallStep;
use crate::store::{self, Backend, ConfirmationRecord, ConfirmationStatus, PendingQuery, PendingScope};

impl Orchestrator {
    /// Makes a call that needs approval a confirmation request, and refuses it. This continues when the caller
    /// disconnects: a stored request has its audit entry, and so have those that expired meanwhile.
    pub(crate) async fn create_confirmation_request(
        &self,
        mut execution: Box<Execution>,
        prepared: Arc<PreparedTool>,
        slot: Option<CallSlot>,
    ) -> Arc<Envelope> {
        let this = self.clone();
        let work = async move {
            let _running = Arc::clone(&this.0.detached);
            let requested = this.request_confirmation(&mut execution, &prepared).await;
            let failure = requested.unwrap_or_else(|failure| failure);
            let envelope = this.refuse(&execution, failure).await;
            if let Some(slot) = slot {
                slot.finish(&envelope);
            }
            envelope
        };
        ContinueWhenDropped::new(work).await
    }

    /// Stores a confirmation request for a call. Returns the refusal that carries it, or why there is none.
    async fn request_confirmation(
        &self,
        execution: &mut Execution,
        prepared: &Arc<PreparedTool>,
    ) -> Result<Failure, Failure> {
        let spec = &prepared.tool.spec;
        let token = NewToken::random();
        execution.steps.begin(CallStep::Preview);
        let preview = self.preview(execution, prepared).await?;
        self.withdraw_changed(execution).await?;
        let redacted_args =
            prepared.has_secrets.then(|| redaction::redacted(&spec.json_schema, &execution.args));
        let request = ConfirmationRecord {
            id: token.id,
            session: execution.session.id.clone(),
            principal: execution.session.principal.key(),
            client_id: execution.session.client_id.clone(),
            execution: execution.id.as_ref().to_owned(),
            tool: execution.tool.clone(),
            tool_version: spec.version.clone(),
            preview,
            args: execution.args.clone(),
            redacted_args,
            is_edited: false,
            digest: execution.digest,
            token_hash: token.hash,
            created_at: execution.now,
            expires_at: execution.now.saturating_add(self.0.policy.confirmation_ms),
            status: ConfirmationStatus::Pending,
            decided_by: None,
            approver: None,
            edits: Vec::new(),
            reason: None,
            roles: Some(execution.session.principal.roles.clone()),
        };
        let stored = self.store_request(request, execution).await.map_err(store_unavailable)??;
        if stored.digest != execution.digest {
            // The id waits for the approval of a different call.
            return Err(execution_id_conflict());
        }
        // A handler must not be able to approve what it calls.
        let secret = execution.parent.is_none().then_some(token.secret);
        Ok(confirmation_token::confirmation_required(&stored, spec, secret))
    }

    /// Takes back the approval of a call whose preview has changed: the person is asked again.
    async fn withdraw_changed(&self, execution: &mut Execution) -> Result<(), Failure> {
        let Some(approval) = execution.approval.take() else { return Ok(()) };
        match self.0.store.withdraw_approval(&approval.id).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(approval_already_used()),
            Err(error) => {
                execution.approval = Some(approval);
                Err(store_unavailable(error))
            }
        }
    }

    /// Stores a confirmation request, and counts it for the rate limits, unless too many wait already. If an expired
    /// one for the same call is still stored, the sweep closes it first.
    async fn store_request(
        &self,
        request: ConfirmationRecord,
        execution: &Execution,
    ) -> store::Result<Result<Arc<ConfirmationRecord>, Failure>> {
        // One at a time: each is counted before the next.
        let _lock = self.0.confirmation_lock.lock().await;
        let (store, policy, now) = (&self.0.store, &self.0.policy, request.created_at);
        let session = PendingQuery::all(PendingScope::Session(&request.session));
        let mut pending = store.pending_confirmations(session).await?;
        let is_same = |other: &Arc<ConfirmationRecord>| other.execution == request.execution;
        if pending.iter().any(|other| is_same(other) && other.expires_at <= now) {
            self.sweep().await?;
        }
        pending.retain(|other| other.expires_at > now);
        if !pending.iter().any(is_same) {
            if pending.len() >= policy.max_pending_per_session {
                let wait = next_expiry(&pending, now);
                return Ok(Err(too_many_pending("this session", policy.max_pending_per_session, wait)));
            }
            let limit = policy.max_pending_per_principal;
            if store.count_pending(&request.principal, now, limit).await? >= limit {
                let principal = PendingQuery::all(PendingScope::Principal(&request.principal));
                let mut pending = store.pending_confirmations(principal).await?;
                pending.retain(|other| other.principal == request.principal);
                return Ok(Err(too_many_pending("this user", limit, next_expiry(&pending, now))));
            }
        }
        if pending.iter().any(|other| is_same(other) && other.digest != request.digest) {
            return Ok(Err(execution_id_conflict()));
        }
        if let Err(failure) = self.spend_rates(execution).await? {
            return Ok(Err(failure));
        }
        store.create_confirmation(request).await.map(Ok)
    }
}

/// In how many milliseconds the next of these expires.
fn next_expiry(pending: &[Arc<ConfirmationRecord>], now: i64) -> u64 {
    let waits = pending.iter().map(|other| other.expires_at.saturating_sub(now)).filter(|wait| *wait > 0);
    waits.min().unwrap_or_default().unsigned_abs()
}

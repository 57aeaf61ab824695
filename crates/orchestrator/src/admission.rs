//! Whether an execution may run: replay, gates and claim. Runs no handler.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use toolwright_contract::{Envelope, Failure};
use toolwright_engine::Cancel;

use crate::capacity::SeatAnswer;
use crate::execution::Execution;
use crate::gate::{self, CallRates, GateInput, GateRefusal, meters};
use crate::invocation::MAX_TIMEOUT;
use crate::orchestrator::Orchestrator;
use crate::prepared_tool::PreparedTool;
use crate::refusal::{
    approval_already_used, cancelled, execution_id_conflict, session_inactive, still_running,
    store_unavailable, toolset_missing, unknown_outcome, unknown_session,
};
use crate::session_state;
use crate::steps::CallStep;
use crate::store::{self, Backend, ClaimOutcome, Durability, ExecutionStatus};

/// How often the store is asked whether a call that runs in another process has ended.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How an execution that was not refused continues.
pub(crate) enum Admission {
    /// It runs.
    Claimed(Arc<PreparedTool>),
    /// It ran before, with this envelope.
    Recorded(Arc<Envelope>),
    /// A person has to approve it first, or again, since the preview has changed.
    Unconfirmed(Arc<PreparedTool>),
}

/// Whether a person has to approve an execution that has passed the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    NotNeeded,
    Needed,
}

/// How an execution is claimed, which depends on its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimKind {
    /// The store has the session, and records the execution id. The claim must be settled or released.
    Stored,
    /// The session ends with this execution, so no other call can have its id. There is nothing to record.
    Ephemeral,
}

impl Orchestrator {
    /// Decides whether an execution runs, waiting while another process runs it.
    pub(crate) async fn replay_admit_claim(&self, execution: &mut Execution) -> Result<Admission, Failure> {
        let is_stored = execution.claim == ClaimKind::Stored;
        loop {
            if is_stored {
                execution.steps.begin(CallStep::Replay);
            }
            if let Some(envelope) = self.replay(execution).await? {
                return Ok(Admission::Recorded(envelope));
            }
            execution.steps.begin(CallStep::Admit);
            let (prepared, confirmation) = self.admit(execution).await?;
            if confirmation == Confirmation::Needed || !self.is_as_previewed(execution, &prepared).await? {
                return Ok(Admission::Unconfirmed(prepared));
            }
            if execution.needs_seat(&prepared) {
                execution.steps.begin(CallStep::Seat);
            }
            if self.take_seat(execution, &prepared).await? && is_stored {
                self.reload_session(execution).await?;
                continue;
            }
            if is_stored {
                execution.steps.begin(CallStep::Claim);
            }
            if let Some(admission) = self.claim(execution, prepared).await? {
                return Ok(admission);
            }
            execution.steps.begin(CallStep::Wait);
            Box::pin(self.wait_for_other_process(execution)).await?;
        }
    }

    /// The recorded envelope of this execution id, if there is one.
    async fn replay(&self, execution: &mut Execution) -> Result<Option<Arc<Envelope>>, Failure> {
        if execution.claim == ClaimKind::Ephemeral {
            return Ok(None);
        }
        let recorded = self.0.store.execution(&execution.session.id, &execution.id).await;
        let Some(record) = recorded.map_err(store_unavailable)? else { return Ok(None) };
        match record.status {
            _ if record.digest != execution.digest => Err(execution_id_conflict()),
            ExecutionStatus::Finished(envelope) => Ok(Some(envelope)),
            ExecutionStatus::InDoubt => Err(unknown_outcome()),
            ExecutionStatus::Running => {
                Box::pin(self.wait_for_other_process(execution)).await?;
                Box::pin(self.replay(execution)).await
            }
            ExecutionStatus::Abandoned => {
                execution.is_charged = true;
                Ok(None)
            }
        }
    }

    /// Prepares the tool and passes the gates.
    async fn admit(&self, execution: &mut Execution) -> Result<(Arc<PreparedTool>, Confirmation), Failure> {
        if !execution.is_test() {
            if execution.task.is_none() && !session_state::is_active(&execution.session, execution.now) {
                return Err(session_inactive("This session is no longer active."));
            }
            self.check_block(execution).await?;
        }
        if execution.task.is_some() && execution.cancel.get().is_some_and(Cancel::is_cancelled) {
            return Err(cancelled());
        }
        let runtime = execution.runtime.clone().ok_or_else(toolset_missing)?;
        let Some(tool) = runtime.toolset().get(&execution.tool) else {
            return Err(self.unknown_tool(&runtime, &execution.session, &execution.tool));
        };
        let prepared = runtime.prepared(tool).await?;
        execution.rates = CallRates::default();
        let mut input = GateInput {
            session: &execution.session,
            prepared: &prepared,
            policy: &self.0.policy,
            rules: &self.0.rules,
            now: execution.now,
            is_approved: execution.approval.is_some(),
            is_charged: execution.is_charged,
            args: &mut execution.args,
            clamped: Map::new(),
            rates: CallRates::default(),
        };
        let gates = match (&execution.host, &execution.task) {
            (Some(_), _) => gate::OF_TESTS,
            (None, Some(_)) => gate::OF_TASKS,
            (None, None) => gate::OF_CALLS,
        };
        let passed = gate::check(gates, &mut input);
        let GateInput { clamped, rates, .. } = input;
        if !clamped.is_empty() {
            execution.more_meta.insert("clamped".to_owned(), Value::Object(clamped));
        }
        execution.prepared = Some(Arc::clone(&prepared));
        execution.note_secrets();
        let confirmation = match passed {
            Ok(()) => Confirmation::NotNeeded,
            Err(GateRefusal::Confirm) => Confirmation::Needed,
            Err(GateRefusal::Deny(failure)) => return Err(failure),
        };
        execution.rates = rates;
        Ok((prepared, confirmation))
    }

    /// Takes a seat if the handler needs one. True when the call has waited for it.
    async fn take_seat(&self, execution: &mut Execution, prepared: &PreparedTool) -> Result<bool, Failure> {
        if execution.permit.is_some() || !execution.needs_seat(prepared) {
            return Ok(false);
        }
        // The handler's own time begins when it has its seat: a write must not be started with little time left.
        match self.0.seats.request(&execution.seat_request(), execution.deadline(prepared))? {
            SeatAnswer::Taken(permit) => {
                execution.permit = Some(permit);
                Ok(false)
            }
            SeatAnswer::Waiting(waiting) => {
                let cancel = execution.cancel.get_or_init(Cancel::new).clone();
                let seat = async {
                    tokio::select! {
                        biased;
                        seat = waiting.seat() => seat,
                        () = cancel.cancelled() => Err(cancelled()),
                    }
                };
                execution.permit = Some(Box::pin(seat).await?);
                Ok(true)
            }
        }
    }

    /// Claims the execution id, charges its meters and uses up the approval in one step. `None` when another
    /// process runs it.
    async fn claim(
        &self,
        execution: &mut Execution,
        prepared: Arc<PreparedTool>,
    ) -> Result<Option<Admission>, Failure> {
        if execution.claim == ClaimKind::Ephemeral {
            self.spend_rates(execution).await.map_err(store_unavailable)??;
            return Ok(Some(Admission::Claimed(prepared)));
        }
        match self.claim_in_store(execution, &prepared).await.map_err(store_unavailable)? {
            ClaimOutcome::New => Ok(Some(Admission::Claimed(prepared))),
            ClaimOutcome::Finished(envelope) => Ok(Some(Admission::Recorded(envelope))),
            ClaimOutcome::Running | ClaimOutcome::LeaseExpired => Ok(None),
            ClaimOutcome::InDoubt => Err(unknown_outcome()),
            ClaimOutcome::Conflict => Err(execution_id_conflict()),
            ClaimOutcome::OverBudget { meter, .. } => {
                Err(meters::exceeded(&meter, self.0.policy.for_mode(execution.session.mode)))
            }
            ClaimOutcome::RateLimited(exceeded) => {
                Err(execution.rates.refuse(exceeded, &self.0.rules.known_refusals, execution.now))
            }
            ClaimOutcome::Unapproved => Err(approval_already_used()),
        }
    }

    /// Claims the execution id. A claim whose reply came too late, since this process was paused, counts as nobody's.
    async fn claim_in_store(
        &self,
        execution: &mut Execution,
        prepared: &PreparedTool,
    ) -> store::Result<ClaimOutcome> {
        execution.lease = self.0.store.lease();
        let outcome = self.0.store.claim(self.store_claim(execution, prepared)).await?;
        if outcome == ClaimOutcome::New && !self.0.store.holds_lease(execution.lease).await {
            self.0.store.take_back(&self.store_claim(execution, prepared)).await?;
            return Ok(ClaimOutcome::LeaseExpired);
        }
        Ok(outcome)
    }

    /// Counts a call that is not claimed for its rate limits. The inner error is its refusal.
    pub(crate) async fn spend_rates(&self, execution: &Execution) -> store::Result<Result<(), Failure>> {
        let CallRates { charges, .. } = &execution.rates;
        if charges.is_empty() {
            return Ok(Ok(()));
        }
        let exceeded = Box::pin(self.0.store.spend_rates(charges, execution.now)).await?;
        let refusals = &self.0.rules.known_refusals;
        Ok(exceeded.map_or(Ok(()), |exceeded| Err(execution.rates.refuse(exceeded, refusals, execution.now))))
    }

    pub(crate) fn store_claim(&self, execution: &Execution, prepared: &PreparedTool) -> store::Claim {
        let spec = &prepared.tool.spec;
        let policy = self.0.policy.for_mode(execution.session.mode);
        store::Claim {
            session: execution.session.id.clone(),
            execution: Arc::clone(&execution.id),
            tool: Arc::clone(&prepared.id),
            tool_version: Arc::clone(&prepared.version),
            digest: execution.digest,
            // To begin a task a second time has no effect: it is the same task.
            idempotent: spec.idempotent || execution.begins_task(prepared),
            charges: if execution.task.is_some() { Vec::new() } else { meters::charges(spec, policy) },
            rates: execution.rates.charges.clone(),
            confirmation: execution.approval.as_ref().map(|approval| approval.id.clone()),
            now: execution.now,
            durability: if spec.idempotent { Durability::Relaxed } else { Durability::Committed },
            lease: Some(execution.lease),
        }
    }

    /// Whether the store has this execution id for this very call.
    pub(crate) async fn is_recorded(&self, execution: &Execution) -> bool {
        let recorded = self.0.store.execution(&execution.session.id, &execution.id).await;
        recorded.is_ok_and(|record| record.is_some_and(|record| record.digest == execution.digest))
    }

    /// Waits while another process runs this execution, then reads the session again.
    async fn wait_for_other_process(&self, execution: &mut Execution) -> Result<(), Failure> {
        let deadline = execution.started + MAX_TIMEOUT;
        execution.permit = None;
        loop {
            let recorded = self.0.store.execution(&execution.session.id, &execution.id).await;
            match recorded.map_err(store_unavailable)?.map(|record| record.status) {
                Some(ExecutionStatus::Running) if Instant::now() < deadline => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Some(ExecutionStatus::Running) => return Err(still_running()),
                _ => return self.reload_session(execution).await,
            }
        }
    }

    /// Reads the session again after a wait: gates must not decide on an old state.
    pub(crate) async fn reload_session(&self, execution: &mut Execution) -> Result<(), Failure> {
        let found = self.0.store.session(&execution.session.id).await.map_err(store_unavailable)?;
        let found = found.ok_or_else(unknown_session)?;
        execution.session = found.with_principal(&execution.session.principal);
        execution.now = self.0.clock.now();
        Ok(())
    }
}

//! The end of a claimed execution: its intents are applied, and its envelope is recorded with the audit entry.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::time::sleep;
use toolwright_contract::{Envelope, Failure, SideEffects, Success, ToolSpec};

use crate::admission::{ClaimKind, POLL_INTERVAL};
use crate::execution::{Execution, replayed};
use crate::finish::{EndRecord, ExecutionEnd};
use crate::invocation::MAX_TIMEOUT;
use crate::orchestrator::Orchestrator;
use crate::refusal::unrecorded_outcome;
use crate::session_state;
use crate::steps::CallStep;
use crate::store::{Backend, Durability, ExecutionStatus, SessionRecord, SettleOutcome, Settlement};

impl Orchestrator {
    /// Applies the intents and records the envelope. Returns the envelope that counts.
    pub(crate) async fn settle(
        &self,
        execution: &mut Execution,
        spec: &ToolSpec,
        outcome: Result<Success, Failure>,
    ) -> Arc<Envelope> {
        execution.steps.begin(CallStep::Settle);
        if let Ok(success) = &outcome
            && !success.intents.is_empty()
            && !execution.is_test()
        {
            let refused = Box::pin(self.apply_intents(execution, &success.intents)).await;
            if !refused.is_empty() {
                execution.more_meta.insert("refusedIntents".to_owned(), Value::Array(refused));
            }
        }
        if execution.retries > 0 {
            execution.more_meta.insert("retries".to_owned(), execution.retries.into());
        }
        let envelope = Arc::new(execution.envelope(outcome));
        if !execution.handler_entries.is_empty() {
            Box::pin(self.write_handler_entries(execution, &envelope)).await;
        }
        let writes = spec.side_effects == SideEffects::Writes;
        let end = if execution.begun_task.is_some() { ExecutionEnd::Queued } else { ExecutionEnd::Ran };
        let audit = execution.audit_entry(end.event(), &envelope);
        let record = match execution.claim {
            ClaimKind::Ephemeral => EndRecord::Append(audit),
            ClaimKind::Stored => EndRecord::Settle(Settlement {
                session: execution.session.id.clone(),
                execution: Arc::clone(&execution.id),
                audit,
                envelope: Arc::clone(&envelope),
                args: execution.recorded_args.clone(),
                durability: if writes || !spec.idempotent {
                    Durability::Committed
                } else {
                    Durability::Relaxed
                },
            }),
        };
        match self.finish(end, Some((&*execution, &envelope)), record).await {
            Ok(SettleOutcome::Recorded) => envelope,
            // Another process took this one for dead and settled the execution: its record counts.
            Ok(SettleOutcome::AlreadySettled(recorded)) => Arc::new(replayed(&recorded)),
            Ok(SettleOutcome::TakenOver) => {
                let recorded = Box::pin(self.recorded_by_other(execution)).await;
                recorded.unwrap_or_else(|| Arc::new(execution.envelope(Err(unrecorded_outcome(writes)))))
            }
            Ok(SettleOutcome::Unclaimed) | Err(_) => {
                Arc::new(execution.envelope(Err(unrecorded_outcome(writes))))
            }
        }
    }

    /// The envelope of the process that has taken the execution over, once it has recorded one.
    async fn recorded_by_other(&self, execution: &Execution) -> Option<Arc<Envelope>> {
        let deadline = Instant::now() + MAX_TIMEOUT;
        loop {
            let recorded = self.0.store.execution(&execution.session.id, &execution.id).await;
            match recorded.ok()??.status {
                ExecutionStatus::Finished(envelope) => return Some(Arc::new(replayed(&envelope))),
                ExecutionStatus::Running if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
                _ => return None,
            }
        }
    }

    /// Applies intents to the session as it is now. Returns the refused ones.
    async fn apply_intents(&self, execution: &Execution, intents: &[Value]) -> Vec<Value> {
        let farewell_ms = self.0.policy.farewell_ms;
        let now = self.0.clock.now();
        if execution.claim == ClaimKind::Ephemeral {
            return session_state::apply(&mut (*execution.session).clone(), intents, now, farewell_ms);
        }
        let apply = |session: &mut SessionRecord| session_state::apply(session, intents, now, farewell_ms);
        self.change(&execution.session.id, apply).await.unwrap_or_else(|error| {
            tracing::error!("could not apply the intents of a call: {error}");
            let refused = |intent: &Value| {
                json!({ "type": intent.get("type"), "reason": "the session could not be changed" })
            };
            intents.iter().map(refused).collect()
        })
    }
}

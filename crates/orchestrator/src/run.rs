//! Runs a claimed execution: the handler under its deadline, with retry by policy, and then the settlement. A call that
//! writes continues when its caller disconnects; one that only reads is cancelled.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::Value;
use toolwright_contract::{Envelope, ErrorKind, Failure, SideEffects, Success};
use toolwright_engine::Cancel;

use crate::admission::ClaimKind;
use crate::engine;
use crate::execution::Execution;
use crate::handler_outcome::HandlerOutcome;
use crate::in_flight::CallSlot;
use crate::invocation::{Invocation, LazyCancel};
use crate::orchestrator::Orchestrator;
use crate::prepared_tool::PreparedTool;
use crate::redaction;
use crate::refusal::{interrupted, not_started};
use crate::steps::CallStep;
use crate::store::{Backend, SessionRecord};

/// The first backoff before a retry; it doubles with each retry, plus up to as much again at random.
const BACKOFF: Duration = Duration::from_millis(100);

impl Orchestrator {
    /// Runs a claimed execution and hands its envelope to the calls that wait for its slot.
    pub(crate) async fn run(
        &self,
        execution: Box<Execution>,
        prepared: Arc<PreparedTool>,
        slot: Option<CallSlot>,
    ) -> Arc<Envelope> {
        let spec = &prepared.tool.spec;
        if spec.side_effects == SideEffects::Writes || !spec.idempotent || execution.begins_task(&prepared) {
            let this = self.clone();
            let work = async move {
                let _running = Arc::clone(&this.0.detached);
                this.run_and_settle(execution, &prepared, slot).await
            };
            return ContinueWhenDropped::new(work).await;
        }
        // A nested call is cancelled with its parent, and must not cancel it.
        let cancel = execution.parent.is_none().then(|| Arc::clone(&execution.cancel));
        let is_stored = execution.claim == ClaimKind::Stored;
        let claimed = is_stored.then(|| (Arc::clone(&execution.session), Arc::clone(&execution.id)));
        let mut guard = CancelWhenDropped { orchestrator: self, cancel, claimed, is_done: false };
        let envelope = self.run_and_settle(execution, &prepared, slot).await;
        guard.is_done = true;
        envelope
    }

    /// Settles the claim also when the execution panics.
    async fn run_and_settle(
        &self,
        mut execution: Box<Execution>,
        prepared: &Arc<PreparedTool>,
        slot: Option<CallSlot>,
    ) -> Arc<Envelope> {
        let work = async {
            if let Some(failure) = self.lost_claim(&execution, prepared).await {
                execution.permit = None;
                return self.refuse(&execution, failure).await;
            }
            let outcome = match execution.begins_task(prepared) {
                true => Box::pin(self.begin_task(&mut execution, prepared)).await,
                false => self.run_with_retry(&mut execution, prepared).await,
            };
            execution.permit = None;
            self.settle(&mut execution, &prepared.tool.spec, outcome).await
        };
        let envelope = match AssertUnwindSafe(work).catch_unwind().await {
            Ok(envelope) => envelope,
            Err(_) => {
                tracing::error!(tool = execution.tool, execution_id = &*execution.id, "a call panicked");
                let spec = &prepared.tool.spec;
                let failure = interrupted(spec.side_effects == SideEffects::Writes);
                Box::pin(self.settle(&mut execution, spec, Err(failure))).await
            }
        };
        if let Some(task) = execution.begun_task.take() {
            self.start_task(task);
        }
        if let Some(slot) = slot {
            slot.finish(&envelope);
        }
        envelope
    }

    /// Why the handler must not start: the lease of the claim has expired, so another process may have taken it over.
    /// The claim is taken back.
    async fn lost_claim(&self, execution: &Execution, prepared: &PreparedTool) -> Option<Failure> {
        if execution.claim == ClaimKind::Ephemeral || self.0.store.holds_lease(execution.lease).await {
            return None;
        }
        let claim = self.store_claim(execution, prepared);
        if let Err(error) = Box::pin(self.0.store.take_back(&claim)).await {
            tracing::error!("could not take back the claim of a call that has not started: {error}");
        }
        Some(not_started())
    }

    /// Runs the handler, and retries transient failures if policy allows it.
    async fn run_with_retry(
        &self,
        execution: &mut Execution,
        prepared: &Arc<PreparedTool>,
    ) -> Result<Success, Failure> {
        let spec = &prepared.tool.spec;
        let allowed = self.0.policy.for_mode(execution.session.mode).retries;
        let max_retries = if spec.idempotent && !execution.is_test() { allowed } else { 0 };
        let deadline = execution.deadline(prepared);
        execution.note_args();
        loop {
            let invocation = Arc::new(Invocation::new(self, execution, prepared, deadline)?);
            let may_retry = execution.retries < max_retries;
            execution.steps.begin(CallStep::Run);
            let args = if may_retry { execution.args.clone() } else { std::mem::take(&mut execution.args) };
            let outcome = self.run_handler(&invocation, args).await;
            execution.collect_effects(&mut invocation.effects());
            match &outcome {
                Err(failure) if may_retry && is_transient(failure) => {
                    let backoff = backoff(execution.retries);
                    if Instant::now() + backoff >= deadline {
                        return outcome;
                    }
                    execution.retries += 1;
                    self.0.metrics.update(&execution.tool, &spec.version, |metrics| metrics.retries += 1);
                    execution.steps.begin(CallStep::Backoff);
                    tokio::time::sleep(backoff).await;
                    let is_stored = execution.claim == ClaimKind::Stored;
                    if is_stored && !self.0.store.holds_lease(execution.lease).await {
                        return outcome;
                    }
                }
                _ => return outcome,
            }
        }
    }

    /// One attempt.
    async fn run_handler(&self, invocation: &Arc<Invocation>, args: Value) -> Result<Success, Failure> {
        let mut result = engine::run(invocation, args).await;
        if let HandlerOutcome { outcome: Ok(success), detail: None } = result {
            result = invocation.check_output(success);
        }
        if let Some(detail) = result.detail {
            invocation.log_detail(detail);
        }
        let mut success = result.outcome.map_err(|failure| scrub_failure(failure, &invocation.secrets))?;
        success.intents.append(&mut invocation.effects().intents);
        Ok(success)
    }
}

type Work = Pin<Box<dyn Future<Output = Arc<Envelope>> + Send>>;

/// Polls work in its caller's task; when the caller drops it, the work continues in a task of its own.
pub(crate) struct ContinueWhenDropped(Option<Work>);

impl ContinueWhenDropped {
    pub fn new(work: impl Future<Output = Arc<Envelope>> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl Future for ContinueWhenDropped {
    type Output = Arc<Envelope>;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> Poll<Arc<Envelope>> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let poll = work.as_mut().poll(context);
        if poll.is_ready() {
            self.0 = None;
        }
        poll
    }
}

impl Drop for ContinueWhenDropped {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

/// Cancels a reading call whose caller drops it, and releases its claim, so that it may be claimed again.
struct CancelWhenDropped<'a> {
    orchestrator: &'a Orchestrator,
    cancel: Option<LazyCancel>,
    /// Session and execution id of a stored claim.
    claimed: Option<(Arc<SessionRecord>, Arc<str>)>,
    is_done: bool,
}

impl Drop for CancelWhenDropped<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if let Some(cancel) = &self.cancel {
            cancel.get_or_init(Cancel::new).cancel();
        }
        let Some((session, execution)) = self.claimed.take() else { return };
        let orchestrator = self.orchestrator.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = orchestrator.0.store.release(&session.id, &execution).await {
                    tracing::error!("could not release the claim of a cancelled call: {error}");
                }
            });
        }
    }
}

/// A failure that may not happen again, and that has had no side effects.
fn is_transient(failure: &Failure) -> bool {
    failure.kind == ErrorKind::Transient && failure.retryable && !failure.partial_side_effects
}

fn backoff(retries: u32) -> Duration {
    let base = BACKOFF * 2_u32.saturating_pow(retries.min(6));
    let jitter = u32::from(crate::ids::random::<1>()[0]);
    base + base * jitter / 256
}

fn scrub_failure(mut failure: Failure, secrets: &[String]) -> Failure {
    if !secrets.is_empty() {
        redaction::scrub(&mut failure.message, secrets);
        if let Some(suggestion) = &mut failure.suggestion {
            redaction::scrub(suggestion, secrets);
        }
        if let Some(details) = &mut failure.details {
            redaction::scrub_value(details, secrets);
        }
    }
    failure
}

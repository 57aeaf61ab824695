//! A claimed call at work: engine, retry, and the settlement. A call that writes goes on when its caller has gone away;
//! one that only reads ends with it.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_contract::{Envelope, ErrorKind, Failure, SideEffects, Success, ToolSpec};
use toolwright_engine::Cancel;

use crate::backing::Backing;
use crate::call::{Asking, Call, Caller, LateCancel};
use crate::engine;
use crate::gate::budget;
use crate::in_flight::Place;
use crate::metrics::Ended;
use crate::normalise::Normalised;
use crate::orchestrator::{ClaimedHere, Orchestrator, replayed};
use crate::redact;
use crate::state;
use crate::store::{AuditEntry, Backend, Durability, SessionRecord, Settled, Settlement};
use crate::trip::{Keeping, Trip};

/// Of the name that a handler gives an entry of the audit.
const LONGEST_EVENT: usize = 200;
/// The first pause before a retry; each is twice the one before, and as much again at random.
const PAUSE: Duration = Duration::from_millis(100);

impl Orchestrator {
    /// Runs a claimed call and hands what comes of it to those who wait at its place.
    pub(crate) async fn run(
        &self,
        trip: Box<Trip>,
        claimed: ClaimedHere,
        place: Option<Place>,
    ) -> Arc<Envelope> {
        let Some(prepared) = &trip.prepared else { return Arc::new(trip.envelope(Err(lost()))) };
        let spec = &prepared.tool.spec;
        if spec.side_effects == SideEffects::Writes || !spec.idempotent {
            let this = self.clone();
            let work = Box::pin(async move {
                let _at_work = Arc::clone(&this.0.detached);
                this.run_here(trip, claimed, place).await
            });
            return Attended(Some(work)).await;
        }
        // A nested call ends with the call that made it, and must not end that one.
        let cancel = trip.parent.is_none().then(|| Arc::clone(&trip.cancel));
        let is_claimed = trip.keeping == Keeping::Stored;
        let claim = is_claimed.then(|| (Arc::clone(&trip.session), Arc::clone(&trip.execution)));
        let mut reading = Reading { orchestrator: self, cancel, claim, is_over: false };
        let envelope = self.run_here(trip, claimed, place).await;
        reading.is_over = true;
        envelope
    }

    /// Whatever happens, the claim is settled.
    async fn run_here(
        &self,
        mut trip: Box<Trip>,
        _claimed: ClaimedHere,
        place: Option<Place>,
    ) -> Arc<Envelope> {
        let settled = {
            let mut work = pin!(self.work(&mut trip));
            poll_fn(|wakeup| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(wakeup))) {
                Ok(poll) => poll.map(Some),
                Err(_) => Poll::Ready(None),
            })
            .await
        };
        let envelope = match settled {
            Some(envelope) => envelope,
            None => {
                tracing::error!(tool = trip.tool, execution_id = &*trip.execution, "a call panicked");
                Box::pin(self.settle(&mut trip, Err(lost()))).await
            }
        };
        if let Some(place) = place {
            place.finish(&envelope);
        }
        envelope
    }

    async fn work(&self, trip: &mut Trip) -> Arc<Envelope> {
        let outcome = self.attempts(trip).await;
        self.settle(trip, outcome).await
    }

    /// Runs the handler, and again if policy allows it.
    async fn attempts(&self, trip: &mut Trip) -> Result<Success, Failure> {
        let (Some(prepared), Some(runtime)) = (trip.prepared.clone(), trip.runtime.clone()) else {
            return Err(lost());
        };
        let retries = self.0.policy.of(trip.session.mode).retries;
        let mut deadline: Option<Instant> = None;
        loop {
            let (session, keeping) = (Arc::clone(&trip.session), trip.keeping);
            let caller = Caller::Of { orchestrator: self.clone(), session, keeping };
            let client = trip.client.clone().unwrap_or_else(|| caller.client());
            let backing = Backing::served(&prepared, client);
            let (execution_id, cancel) = (Arc::clone(&trip.execution), Arc::clone(&trip.cancel));
            let asking = Asking { execution_id, cancel, now: None };
            let parent = trip.parent.clone();
            let mut call = Call::new(runtime.clone(), Arc::clone(&prepared), asking, caller, backing, parent);
            call.attempt = trip.retries;
            call.trace = trip.span.map(|span| span.own);
            call.secrets = Arc::clone(&trip.hidden.secrets);
            call.deadline = deadline.map_or(call.deadline, |deadline| call.deadline.min(deadline));
            let deadline_now = *deadline.insert(call.deadline);
            let call = Arc::new(call);
            let may_retry = trip.retries < retries && prepared.tool.spec.idempotent;
            let args = if may_retry { trip.args.clone() } else { std::mem::take(&mut trip.args) };
            let outcome = self.attempt(&call, args, &trip.hidden.secrets).await;
            trip.heard(&mut call.asked());
            match &outcome {
                Err(failure) if may_retry && is_passing(failure) => {
                    let pause = pause(trip.retries);
                    if Instant::now() + pause >= deadline_now {
                        return outcome;
                    }
                    trip.retries += 1;
                    self.0.metrics.of(&trip.tool, &prepared.tool.spec.version).count_retry();
                    tokio::time::sleep(pause).await;
                }
                _ => return outcome,
            }
        }
    }

    async fn attempt(&self, call: &Arc<Call>, args: Value, secrets: &[String]) -> Result<Success, Failure> {
        let Normalised { outcome, detail } = engine::run(call, args).await;
        if let Some(mut detail) = detail {
            redact::scrub(&mut detail, secrets);
            tracing::error!(tool = call.spec().tool_id, execution_id = &*call.execution_id, "{detail}");
        }
        let mut success = outcome.map_err(|failure| scrubbed(failure, secrets))?;
        call.runtime.check_output(call, &success)?;
        success.intents.append(&mut call.asked().intents);
        Ok(success)
    }

    /// Applies the intents, records the envelope, and closes the call.
    async fn settle(&self, trip: &mut Trip, outcome: Result<Success, Failure>) -> Arc<Envelope> {
        let Some(prepared) = trip.prepared.clone() else { return Arc::new(trip.envelope(outcome)) };
        let spec = &prepared.tool.spec;
        if let Ok(success) = &outcome
            && !success.intents.is_empty()
        {
            let refused = Box::pin(self.apply(trip, &success.intents)).await;
            if !refused.is_empty() {
                trip.more.insert("refusedIntents".to_owned(), Value::Array(refused));
            }
        }
        if trip.retries > 0 {
            trip.more.insert("retries".to_owned(), trip.retries.into());
        }
        let (took, error) = (trip.started.elapsed(), outcome.as_ref().err().map(|failure| failure.kind));
        let is_over = self.is_over(trip, spec, took);
        let envelope = Arc::new(trip.envelope(outcome));
        let writes = spec.side_effects == SideEffects::Writes;
        let durability = if writes || !spec.idempotent { Durability::Committed } else { Durability::Relaxed };
        let settlement = Settlement {
            session: trip.session.id.clone(),
            execution: Arc::clone(&trip.execution),
            audit: trip.audit("called", &envelope),
            envelope: Arc::clone(&envelope),
            now: self.0.clock.now(),
            durability,
        };
        if !trip.entries.is_empty() {
            Box::pin(self.write_entries(trip, &envelope)).await;
        }
        let settled = match trip.keeping {
            Keeping::Stored => self.0.store.settle(settlement).await,
            Keeping::Unstored => self.0.store.append(settlement.audit).await.map(|()| Settled::First),
        };
        self.0.metrics.of(&trip.tool, &spec.version).count(Ended::Ran, error, took, is_over);
        self.observed(trip, Ended::Ran, error);
        let lost = match settled {
            Ok(Settled::First) => return envelope,
            // Somebody else has taken it for lost, and said so: the record is what counts.
            Ok(Settled::Earlier(recorded)) => return Arc::new(replayed(&recorded)),
            Ok(Settled::Unclaimed) => "its claim is gone".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::error!(tool = trip.tool, execution_id = &*trip.execution, "not recorded: {lost}");
        Arc::new(trip.envelope(Err(unrecorded(writes))))
    }

    /// Whether it took longer than it should: a matter for the log, and counted.
    fn is_over(&self, trip: &Trip, spec: &ToolSpec, took: Duration) -> bool {
        let budget = spec.latency_budget_ms.as_f64().unwrap_or(f64::MAX);
        let soft = f64::from(self.0.policy.of(trip.session.mode).retrieval_soft_limit_ms);
        let budget = if budget::costs(spec) { budget.min(soft) } else { budget };
        let is_over = took.as_secs_f64() * 1000.0 > budget;
        if is_over {
            let (tool, took) = (&trip.tool, took.as_millis());
            tracing::warn!(tool, "took {took} ms, more than its latency budget of {budget} ms");
        }
        is_over
    }

    /// Writes what the handler added to the audit.
    async fn write_entries(&self, trip: &mut Trip, envelope: &Envelope) {
        for (mut event, mut data) in std::mem::take(&mut trip.entries) {
            event.truncate(event.floor_char_boundary(LONGEST_EVENT));
            redact::scrub(&mut event, &trip.hidden.secrets);
            redact::scrub_value(&mut data, &trip.hidden.secrets);
            let entry = AuditEntry { data, ..trip.audit(&format!("handler:{event}"), envelope) };
            if let Err(error) = self.0.store.append(entry).await {
                tracing::error!("the audit could not be written: {error}");
            }
        }
    }

    /// Applies intents to the session as it is now. Returns the refused ones.
    async fn apply(&self, trip: &Trip, intents: &[Value]) -> Vec<Value> {
        let farewell_ms = self.0.policy.farewell_ms;
        let now = self.0.clock.now();
        if trip.keeping == Keeping::Unstored {
            return state::apply(&mut (*trip.session).clone(), intents, now, farewell_ms);
        }
        let changed =
            self.change(&trip.session.id, |session| state::apply(session, intents, now, farewell_ms)).await;
        changed.unwrap_or_else(|error| {
            tracing::error!("intents could not be applied: {error}");
            let refused = |intent: &Value| json!({ "type": intent.get("type"), "reason": "the session could not be changed" });
            intents.iter().map(refused).collect()
        })
    }
}

type Work = Pin<Box<dyn Future<Output = Arc<Envelope>> + Send>>;

/// Work that its caller does itself, and that goes on in a task of its own when the caller has gone away.
struct Attended(Option<Work>);

impl Future for Attended {
    type Output = Arc<Envelope>;

    fn poll(mut self: Pin<&mut Self>, wakeup: &mut std::task::Context<'_>) -> Poll<Arc<Envelope>> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let poll = work.as_mut().poll(wakeup);
        if poll.is_ready() {
            self.0 = None;
        }
        poll
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if let Some(work) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

/// A read whose caller goes away is cancelled, and may be claimed anew.
struct Reading<'a> {
    orchestrator: &'a Orchestrator,
    cancel: Option<LateCancel>,
    /// What was claimed, unless the store does not know the session.
    claim: Option<(Arc<SessionRecord>, Arc<str>)>,
    is_over: bool,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Some(cancel) = &self.cancel {
            cancel.get_or_init(Cancel::new).cancel();
        }
        let Some((session, execution)) = self.claim.take() else { return };
        let orchestrator = self.orchestrator.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = orchestrator.0.store.release(&session.id, &execution).await {
                    tracing::error!("a cancelled call could not be released: {error}");
                }
            });
        }
    }
}

/// A failure that may be gone the next moment, and that has done nothing.
fn is_passing(failure: &Failure) -> bool {
    failure.kind == ErrorKind::Transient && failure.retryable && !failure.partial_side_effects
}

fn pause(retries: u32) -> Duration {
    let base = PAUSE * 2_u32.saturating_pow(retries.min(6));
    let share = u32::from(crate::ids::random::<1>()[0]);
    base + base * share / 256
}

fn scrubbed(mut failure: Failure, secrets: &[String]) -> Failure {
    if !secrets.is_empty() {
        redact::scrub(&mut failure.message, secrets);
        if let Some(suggestion) = &mut failure.suggestion {
            redact::scrub(suggestion, secrets);
        }
        if let Some(details) = &mut failure.details {
            redact::scrub_value(details, secrets);
        }
    }
    failure
}

fn lost() -> Failure {
    Failure::unforeseen("The call was lost: whether it was done is not known.")
}

fn unrecorded(writes: bool) -> Failure {
    let failure = Failure::new(ErrorKind::Internal, "The call ran, but its result could not be recorded.");
    Failure { partial_side_effects: writes, ..failure }
        .suggest("Check what was done, or ask the user, before anything is repeated.")
}

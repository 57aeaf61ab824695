//! The one path of every call, whatever the transport:
//!
//! ```text
//! resolve → replay → admit (gates) → claim → run (deadline, retry) → settle (intents, record) → audit → answer
//! ```
//! The inner path is `?` all the way; what is counted, audited and logged is in [`Orchestrator::close`] alone.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::watch;
use toolwright_capabilities::{Client, Silent};
use toolwright_contract::{Envelope, ErrorKind, Failure, Meta};

use crate::block;
use crate::builder::Builder;
use crate::call::Call;
use crate::clock::Clock;
use crate::deliveries::Deliveries;
use crate::describe::{DESCRIBE, describe};
use crate::gate::{self, Attempt, Rules, Stop, Tokens, budget};
use crate::ids;
use crate::in_flight::{self, InFlight, Seat};
use crate::metrics::{Ended, Metrics, ToolMetrics};
use crate::observe::{Observer, Span};
use crate::policy::Policy;
use crate::refusal::{
    conflict, in_doubt, inactive, no_session, out_of_reach, still_running, unapproved, without_toolset,
};
use crate::runtime::Runtime;
use crate::state;
use crate::store::{Backend, Claim, Claimed, Durability, SessionRecord, Status, Store};
use crate::trip::{Hidden, Keeping, Trip};

/// Ids of callers are bounded: they are kept.
const LONGEST_ID: usize = 256;
/// How often a call that runs elsewhere is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A call as a model or a client makes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call; derived from turn, position, tool and arguments when absent.
    pub id: Option<String>,
    pub tool: String,
    pub args: Value,
}

/// Takes calls from request to envelope. Cloning shares it.
#[derive(Clone)]
pub struct Orchestrator(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub store: Store,
    pub policy: Policy,
    pub clock: Clock,
    pub rules: Rules,
    pub toolsets: RwLock<Toolsets>,
    pub clients: RwLock<HashMap<String, Arc<dyn Client>>>,
    pub in_flight: InFlight,
    pub metrics: Metrics,
    pub deliveries: Deliveries,
    /// How many toolsets were installed since the beginning.
    pub installed: watch::Sender<u64>,
    /// Held by work that goes on when its caller has gone away.
    pub detached: Arc<()>,
    pub observer: Option<Arc<dyn Observer>>,
}

/// The toolsets that sessions hold, by version.
pub(crate) struct Toolsets {
    pub current: Runtime,
    pub current_version: String,
    pub by_version: HashMap<String, Runtime>,
}

impl Toolsets {
    /// The versions that neither new sessions begin with nor anybody holds at this moment.
    pub fn unused(&self) -> impl Iterator<Item = &String> {
        let is_unused = |(_, runtime): &(&String, &Runtime)| !runtime.is_shared();
        self.by_version.iter().filter(is_unused).map(|(version, _)| version)
    }
}

impl std::fmt::Debug for Orchestrator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Orchestrator").field("policy", &self.0.policy).finish_non_exhaustive()
    }
}

impl Orchestrator {
    /// Begins to set one up for a toolset.
    pub fn builder(runtime: Runtime) -> Builder {
        Builder::new(runtime)
    }

    pub(crate) fn with(set_up: Builder, rules: Rules) -> Self {
        let Builder { runtime: current, store, policy, clock, observer } = set_up;
        let current_version = key_of(&current);
        let by_version = HashMap::from([(current_version.clone(), current.clone())]);
        Self(Arc::new(Inner {
            store,
            policy,
            clock,
            rules,
            toolsets: RwLock::new(Toolsets { current, current_version, by_version }),
            clients: RwLock::default(),
            in_flight: InFlight::default(),
            metrics: Metrics::default(),
            deliveries: Deliveries::default(),
            installed: watch::Sender::default(),
            detached: Arc::default(),
            observer,
        }))
    }

    /// Runs one call of a session. Always an envelope.
    pub async fn call(&self, session: &str, call: ToolCall) -> Envelope {
        unshared(self.call_shared(session, call).await)
    }

    /// As [`Self::call`], for those who only read the envelope: the store holds the same one.
    pub async fn call_shared(&self, session: &str, call: ToolCall) -> Arc<Envelope> {
        self.call_at(session, call, 0, None).await
    }

    /// Counters per tool and version.
    pub fn metrics(&self) -> Vec<ToolMetrics> {
        self.0.metrics.read()
    }

    /// The store, for those who look.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn runtime(&self, version: &str) -> Option<Runtime> {
        let toolsets = self.0.toolsets.read().unwrap_or_else(PoisonError::into_inner);
        // Nearly all sessions keep it.
        if toolsets.current_version == version {
            return Some(toolsets.current.clone());
        }
        toolsets.by_version.get(version).cloned()
    }

    pub(crate) async fn call_at(
        &self,
        session: &str,
        call: ToolCall,
        position: usize,
        parent: Option<Arc<Call>>,
    ) -> Arc<Envelope> {
        match self.resolve(session, call, position, parent).await {
            Ok(trip) => self.walk(trip).await,
            Err(envelope) => Arc::new(*envelope),
        }
    }

    /// The corridor from here to its end.
    pub(crate) async fn walk(&self, mut trip: Box<Trip>) -> Arc<Envelope> {
        if trip.tool == DESCRIBE {
            let outcome = describe(&trip);
            return self.close(&trip, trip.envelope(outcome), Ended::Refused).await;
        }
        if trip.keeping == Keeping::Unstored {
            return match self.travel(&mut trip).await {
                Travelled::Done(envelope) => envelope,
                Travelled::Run(claimed) => self.run(trip, claimed, None).await,
            };
        }
        loop {
            match self.0.in_flight.enter(&trip.session, &trip.execution, trip.digest) {
                // The id is this call's by record: the other one is about to be told so.
                Seat::Other(other) if self.is_recorded(&trip).await => {
                    in_flight::wait(other).await;
                }
                Seat::Other(_) => {
                    let refused = trip.envelope(Err(conflict()));
                    return self.close(&trip, refused, Ended::Refused).await;
                }
                Seat::Same(result) => {
                    if let Some(envelope) = in_flight::wait(result).await {
                        return self.close(&trip, replayed(&envelope), Ended::Replayed).await;
                    }
                    // The first was cancelled: now it is this one's turn.
                }
                Seat::First(place) => match self.travel(&mut trip).await {
                    Travelled::Done(envelope) => {
                        place.finish(&envelope);
                        return envelope;
                    }
                    Travelled::Run(claimed) => return self.run(trip, claimed, Some(place)).await,
                },
            }
            if let Err(failure) = self.refresh(&mut trip).await {
                let refused = trip.envelope(Err(failure));
                return self.close(&trip, refused, Ended::Refused).await;
            }
        }
    }

    /// After it has waited, a call must not be judged by what was before.
    async fn refresh(&self, trip: &mut Trip) -> Result<(), Failure> {
        let found = self.0.store.session(&trip.session.id).await.map_err(|error| out_of_reach(&error))?;
        trip.session = found.ok_or_else(no_session)?;
        trip.now = self.0.clock.now();
        Ok(())
    }

    /// Finds the session, its toolset and the call's id.
    pub(crate) async fn resolve(
        &self,
        session: &str,
        call: ToolCall,
        position: usize,
        parent: Option<Arc<Call>>,
    ) -> Result<Box<Trip>, Box<Envelope>> {
        let started = Instant::now();
        let found = self.0.store.session(session).await.map_err(|error| lost(&call, out_of_reach(&error)))?;
        let session = block::shown(found).ok_or_else(|| lost(&call, no_session()))?;
        self.begin(started, session, call, position, parent)
    }

    /// A call of a session that was looked up already.
    pub(crate) fn begin(
        &self,
        started: Instant,
        session: Arc<SessionRecord>,
        call: ToolCall,
        position: usize,
        parent: Option<Arc<Call>>,
    ) -> Result<Box<Trip>, Box<Envelope>> {
        let runtime = self.runtime(&session.toolset);
        let is_own = parent.is_none();
        if is_own && call.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > LONGEST_ID) {
            let message = format!("The call's id must have 1 to {LONGEST_ID} bytes.");
            let failure = Failure::new(ErrorKind::Validation, message).suggest("Send a shorter id, or none.");
            return Err(lost(&ToolCall { id: None, ..call }, failure));
        }
        let ToolCall { id, mut tool, args } = call;
        // No tool has such a name, and it is kept in the audit.
        tool.truncate(tool.floor_char_boundary(LONGEST_ID));
        let digest = ids::digest(&tool, &args);
        let execution = id.unwrap_or_else(|| ids::derived(session.turn, position, &digest)).into();
        let watched = self.0.observer.is_some();
        let span = watched.then(|| Span::begin(parent.as_ref().and_then(|parent| parent.trace)));
        Ok(Box::new(Trip {
            started,
            now: self.0.clock.now(),
            session,
            runtime,
            tool,
            execution,
            digest,
            hidden: Hidden::default(),
            prepared: None,
            args,
            approval: None,
            cancel: parent.as_ref().map(|parent| Arc::clone(&parent.cancel)).unwrap_or_default(),
            parent,
            client: None,
            span,
            more: Map::new(),
            retries: 0,
            entries: Vec::new(),
            is_paid: false,
            tokens: Tokens::default(),
            keeping: Keeping::Stored,
        }))
    }

    /// Replay, gates, claim: until it is clear whether the call runs.
    pub(crate) async fn travel(&self, trip: &mut Trip) -> Travelled {
        match self.admit_and_claim(trip).await {
            Ok(Passed::Claimed) => Travelled::Run(ClaimedHere(())),
            Ok(Passed::Recorded(envelope)) => {
                Travelled::Done(self.close(trip, replayed(&envelope), Ended::Replayed).await)
            }
            Err(failure) => {
                let refused = trip.envelope(Err(failure));
                Travelled::Done(self.close(trip, refused, Ended::Refused).await)
            }
        }
    }

    async fn admit_and_claim(&self, trip: &mut Trip) -> Result<Passed, Failure> {
        if trip.keeping == Keeping::Unstored {
            // Nobody else can name this session: there is nothing to replay, and nobody to claim it from.
            self.admit(trip).await?;
            trip.tokens.spend();
            return Ok(Passed::Claimed);
        }
        loop {
            if let Some(envelope) = self.replay(trip).await? {
                return Ok(Passed::Recorded(envelope));
            }
            self.admit(trip).await?;
            let claimed =
                self.0.store.claim(self.claim_of(trip)).await.map_err(|error| out_of_reach(&error))?;
            match claimed {
                Claimed::New => {
                    trip.tokens.spend();
                    return Ok(Passed::Claimed);
                }
                Claimed::Finished(envelope) => return Ok(Passed::Recorded(envelope)),
                Claimed::Running => self.wait_elsewhere(trip).await?,
                Claimed::InDoubt => return Err(in_doubt()),
                Claimed::Conflict => return Err(conflict()),
                Claimed::OverBudget { .. } => {
                    let limit = self.0.policy.of(trip.session.mode).retrieval_calls;
                    return Err(budget::exceeded(limit));
                }
                Claimed::Unapproved => return Err(unapproved()),
            }
        }
    }

    /// What was recorded for this id, if anything.
    async fn replay(&self, trip: &mut Trip) -> Result<Option<Arc<Envelope>>, Failure> {
        let recorded = self.0.store.recorded(&trip.session.id, &trip.execution).await;
        let Some(standing) = recorded.map_err(|error| out_of_reach(&error))? else { return Ok(None) };
        match standing.status {
            _ if standing.digest != trip.digest => Err(conflict()),
            Status::Finished(envelope) => Ok(Some(envelope)),
            Status::InDoubt => Err(in_doubt()),
            Status::Running => {
                self.wait_elsewhere(trip).await?;
                Box::pin(self.replay(trip)).await
            }
            Status::Abandoned => {
                trip.is_paid = true;
                Ok(None)
            }
        }
    }

    /// Whether the id stands for this very call.
    async fn is_recorded(&self, trip: &Trip) -> bool {
        let recorded = self.0.store.recorded(&trip.session.id, &trip.execution).await;
        recorded.is_ok_and(|standing| standing.is_some_and(|standing| standing.digest == trip.digest))
    }

    /// Waits while another process is at this call.
    async fn wait_elsewhere(&self, trip: &mut Trip) -> Result<(), Failure> {
        let give_up = trip.started + crate::call::LONGEST;
        loop {
            let recorded = self.0.store.recorded(&trip.session.id, &trip.execution).await;
            match recorded.map_err(|error| out_of_reach(&error))?.map(|standing| standing.status) {
                Some(Status::Running) if Instant::now() < give_up => tokio::time::sleep(LOOK_AGAIN).await,
                Some(Status::Running) => return Err(still_running()),
                _ => return self.refresh(trip).await,
            }
        }
    }

    /// The gates; a call that needs a person is turned into a question.
    async fn admit(&self, trip: &mut Trip) -> Result<(), Failure> {
        if !state::is_active(&trip.session, trip.now) {
            return Err(inactive("This session is over."));
        }
        self.let_in(trip).await?;
        let runtime = trip.runtime.clone().ok_or_else(without_toolset)?;
        let tool = runtime.toolset().get(&trip.tool).ok_or_else(|| runtime.unknown(&trip.tool))?;
        let prepared = runtime.ready(tool).await?;
        let args = std::mem::take(&mut trip.args);
        trip.tokens = Tokens::default();
        let mut attempt = Attempt {
            session: &trip.session,
            prepared: &prepared,
            policy: &self.0.policy,
            rules: &self.0.rules,
            now: trip.now,
            is_approved: trip.approval.is_some(),
            is_paid: trip.is_paid,
            args,
            clamped: Map::new(),
            tokens: Tokens::default(),
        };
        let admitted = gate::admit(&mut attempt);
        let Attempt { args, clamped, tokens, .. } = attempt;
        (trip.args, trip.tokens) = (args, tokens);
        if !clamped.is_empty() {
            trip.more.insert("clamped".to_owned(), Value::Object(clamped));
        }
        trip.prepared = Some(prepared);
        trip.hide();
        match admitted {
            Ok(()) => Ok(()),
            Err(Stop::Deny(failure)) => {
                trip.tokens = Tokens::default();
                Err(failure)
            }
            Err(Stop::Confirm) => Err(self.ask(trip).await),
        }
    }

    fn claim_of(&self, trip: &Trip) -> Claim {
        let prepared = trip.prepared.as_ref();
        let spec = prepared.map(|prepared| &prepared.tool.spec);
        let idempotent = spec.is_some_and(|spec| spec.idempotent);
        let limit = self.0.policy.of(trip.session.mode).retrieval_calls;
        Claim {
            session: trip.session.id.clone(),
            execution: Arc::clone(&trip.execution),
            tool: prepared.map(|prepared| Arc::clone(&prepared.id)).unwrap_or_default(),
            tool_version: prepared.map(|prepared| Arc::clone(&prepared.version)).unwrap_or_default(),
            digest: trip.digest,
            idempotent,
            budget: spec.is_some_and(budget::costs).then_some((trip.session.turn, limit)),
            confirmation: trip.approval.as_ref().map(|approval| approval.id.clone()),
            now: trip.now,
            durability: if idempotent { Durability::Relaxed } else { Durability::Committed },
        }
    }

    /// Closes a call that did not run: counted, audited, logged. One that ran is closed by `settle`.
    async fn close(&self, trip: &Trip, envelope: Envelope, ended: Ended) -> Arc<Envelope> {
        let error = envelope.outcome.as_ref().err().map(|failure| failure.kind);
        let ended = if trip.tool == DESCRIBE { Ended::Ran } else { ended };
        // Invented names share one row: they must not fill the memory.
        let is_known =
            trip.runtime.as_ref().is_some_and(|runtime| runtime.toolset().get(&trip.tool).is_some());
        let name = if is_known || trip.tool == DESCRIBE { trip.tool.as_str() } else { "(unknown)" };
        // What is not of a toolset has the version of this program.
        let version = envelope.meta.tool_version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        self.0.metrics.of(name, version).count(ended, error, trip.started.elapsed(), false);
        self.observed(trip, ended, error);
        let event = match ended {
            Ended::Ran => "described",
            Ended::Replayed => "replayed",
            Ended::Refused => "refused",
        };
        tracing::debug!(
            session = trip.session.id,
            tool = trip.tool,
            execution_id = &*trip.execution,
            event,
            ?error
        );
        if let Err(error) = self.0.store.append(trip.audit(event, &envelope)).await {
            tracing::error!("the audit could not be written: {error}");
        }
        Arc::new(envelope)
    }

    pub(crate) fn client(&self, session: &str) -> Arc<dyn Client> {
        let clients = self.0.clients.read().unwrap_or_else(PoisonError::into_inner);
        clients.get(session).cloned().unwrap_or_else(|| Arc::new(Silent))
    }
}

/// How far a call came.
pub(crate) enum Travelled {
    Done(Arc<Envelope>),
    Run(ClaimedHere),
}

/// Proof that the call was claimed by this process: only then may it run.
pub(crate) struct ClaimedHere(());

enum Passed {
    Claimed,
    Recorded(Arc<Envelope>),
}

/// The envelope of a call that belongs to no session.
fn lost(call: &ToolCall, failure: Failure) -> Box<Envelope> {
    let meta = Meta {
        tool: call.tool.clone(),
        tool_version: None,
        registry_version: String::new(),
        duration: 0,
        execution_id: call.id.clone().unwrap_or_default(),
        more: Map::new(),
    };
    Box::new(Envelope { outcome: Err(failure), meta })
}

/// An envelope as it is answered from the record.
pub(crate) fn replayed(envelope: &Arc<Envelope>) -> Envelope {
    let mut again = (**envelope).clone();
    again.meta.more.insert("replayed".to_owned(), true.into());
    again
}

/// What a session remembers of its toolset: the version, and the handlers too, which a version does not cover.
pub(crate) fn key_of(runtime: &Runtime) -> String {
    let toolset = runtime.toolset();
    let digest = toolset.content_digest.rsplit(':').next().unwrap_or_default();
    format!("{}+{}", toolset.version, &digest[..digest.len().min(12)])
}

pub(crate) fn unshared(envelope: Arc<Envelope>) -> Envelope {
    Arc::try_unwrap(envelope).unwrap_or_else(|shared| (*shared).clone())
}

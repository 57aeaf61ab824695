//! The orchestrator itself: what all calls share. The path of a call is in `entry`.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use toolwright_capabilities::Client;
use toolwright_contract::Mode;
use toolwright_registry::prompt::Limits;

use crate::call_feed::CallFeed;
use crate::capacity::{Capacity, CapacityUse, Seats};
use crate::clock::{Clock, SteadyClock};
use crate::condition::Condition;
use crate::deferred_results::DeferredResults;
use crate::gate::Rules;
use crate::gate::meters::{self, MeterUse};
use crate::in_flight::InFlight;
use crate::metrics::{Metrics, ToolMetrics};
use crate::policy::Policy;
use crate::recent_calls::RecentCalls;
use crate::runtime::Runtime;
use crate::series::Series;
use crate::session_clients::SessionClients;
use crate::session_watch::SessionWatches;
use crate::spans::Observer;
use crate::store::{Memory, SessionRecord, Store};
use crate::tasks::Tasks;
use crate::toolsets::Toolsets;

/// How often `wait_until_idle` checks.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Takes calls from request to envelope. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Orchestrator(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub store: Store,
    pub policy: Policy,
    pub clock: SteadyClock,
    pub rules: Rules,
    pub seats: Seats,
    pub toolsets: RwLock<Toolsets>,
    /// Held while a toolset is written to the store or loaded from it.
    pub toolset_lock: tokio::sync::Mutex<()>,
    pub clients: SessionClients,
    pub in_flight: InFlight,
    pub metrics: Metrics,
    pub series: Series,
    pub recent_calls: RecentCalls,
    pub call_feed: CallFeed,
    pub deferred_results: DeferredResults,
    pub session_watches: SessionWatches,
    pub tasks: Tasks,
    /// How many toolsets have been installed.
    pub installed: watch::Sender<u64>,
    /// Held while a confirmation request is counted and stored.
    pub confirmation_lock: tokio::sync::Mutex<()>,
    /// Cloned by work that continues when its caller disconnects.
    pub detached: Arc<()>,
    pub observer: Option<Arc<dyn Observer>>,
}

/// Builds an orchestrator.
#[derive(Debug)]
pub struct Builder(Inner);

/// An invalid policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the auto-approval rule is invalid: {0}")]
pub struct Error(String);

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Inner").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Orchestrator {
    /// Starts to build one for a toolset.
    pub fn builder(runtime: Runtime) -> Builder {
        Builder(Inner {
            store: Store::Memory(Memory::default()),
            policy: Policy::default(),
            clock: SteadyClock::new(Clock::System),
            rules: Rules::default(),
            seats: Seats::new(Capacity::default()),
            toolsets: RwLock::new(Toolsets::new(runtime)),
            toolset_lock: tokio::sync::Mutex::default(),
            clients: SessionClients::default(),
            in_flight: InFlight::default(),
            metrics: Metrics::default(),
            series: Series::default(),
            recent_calls: RecentCalls::default(),
            call_feed: CallFeed::default(),
            deferred_results: DeferredResults::default(),
            session_watches: SessionWatches::default(),
            tasks: Tasks::new(Capacity::default().max_background),
            installed: watch::Sender::default(),
            confirmation_lock: tokio::sync::Mutex::default(),
            detached: Arc::default(),
            observer: None,
        })
    }

    /// Counters per tool and version.
    pub fn metrics(&self) -> Vec<ToolMetrics> {
        self.0.metrics.read()
    }

    /// The limits of a mode that are in force.
    pub fn limits(&self, mode: Mode) -> Limits {
        self.0.policy.for_mode(mode).limits
    }

    /// What a session has spent of each meter, and the limits of its mode.
    pub fn meter_uses(&self, session: &SessionRecord) -> Vec<MeterUse> {
        meters::uses(&session.spent, self.0.policy.for_mode(session.mode))
    }

    /// How many handlers run, and how many calls wait for one to end.
    pub fn capacity_use(&self) -> CapacityUse {
        self.0.seats.used()
    }

    /// The time by its clock, in milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.0.clock.now()
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Waits until no work runs whose caller may have disconnected. False on timeout.
    pub async fn wait_until_idle(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while Arc::strong_count(&self.0.detached) > 1 {
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        true
    }

    pub(crate) fn client(&self, session: &str) -> Arc<dyn Client> {
        self.0.clients.of_session(session)
    }
}

impl Builder {
    /// Where sessions, executions, confirmation requests and the audit log are stored. In memory by default.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.0.store = store;
        self
    }

    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.0.policy = policy;
        self
    }

    /// How many handlers run at a time.
    #[must_use]
    pub fn capacity(mut self, capacity: Capacity) -> Self {
        self.0.tasks = Tasks::new(capacity.max_background);
        self.0.seats = Seats::new(capacity);
        self
    }

    /// Replaces the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.0.clock = SteadyClock::new(clock);
        self
    }

    /// Receives every call that has ended.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.0.observer = Some(observer);
        self
    }

    pub fn build(mut self) -> Result<Orchestrator, Error> {
        let rule = self.0.policy.approve_when.as_deref().map(Condition::compile_rule).transpose();
        self.0.rules.approve_when = rule.map_err(Error)?;
        Ok(Orchestrator(Arc::new(self.0)))
    }
}

//! Builds an orchestrator.

use std::fmt;
use std::sync::Arc;

use crate::clock::Clock;
use crate::condition::Condition;
use crate::gate::Rules;
use crate::observe::Observer;
use crate::orchestrator::Orchestrator;
use crate::policy::Policy;
use crate::runtime::Runtime;
use crate::store::{Memory, Store};

/// Builds an orchestrator.
pub struct Builder {
    pub(crate) runtime: Runtime,
    pub(crate) store: Store,
    pub(crate) policy: Policy,
    pub(crate) clock: Clock,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Builder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// An invalid policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the auto-approval rule is invalid: {0}")]
pub struct Error(String);

impl Builder {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            store: Store::Memory(Memory::default()),
            policy: Policy::default(),
            clock: Clock::System,
            observer: None,
        }
    }

    /// Where sessions, executions, confirmation requests and the audit log are stored. In memory by default.
    #[must_use]
    pub fn store(mut self, store: Store) -> Self {
        self.store = store;
        self
    }

    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Replaces the system's clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Receives every call that has ended.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    pub fn build(self) -> Result<Orchestrator, Error> {
        let rule = self.policy.approve_when.as_deref().map(Condition::compile).transpose().map_err(Error)?;
        let rules = Rules { approve_when: rule, ..Rules::default() };
        Ok(Orchestrator::new(self, rules))
    }
}

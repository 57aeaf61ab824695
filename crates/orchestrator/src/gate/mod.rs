//! The gates that a call passes before it may claim anything: a plain list of functions, in order. A refusal is an
//! envelope with a suggestion, and leaves no trace but in the audit.

mod available;
pub(crate) mod budget;
mod clamp;
mod confirmed;
mod mode;
mod rate;
pub(crate) mod role;
mod valid;

use std::sync::Arc;

use serde_json::{Map, Value};
use toolwright_contract::{Failure, ToolSpec};

use crate::condition::About;
use crate::policy::{ModePolicy, Policy};
use crate::prepared::Prepared;
use crate::store::SessionRecord;

pub(crate) use rate::{Rates, Tokens};

/// A call on its way through the gates.
pub(crate) struct Attempt<'a> {
    pub session: &'a SessionRecord,
    pub prepared: &'a Prepared,
    pub policy: &'a Policy,
    pub rules: &'a Rules,
    pub now: i64,
    /// A person has said yes to this very call.
    pub is_approved: bool,
    /// The turn's budget was spent on it already.
    pub is_paid: bool,
    /// What will run: defaults filled in, clamped.
    pub args: Value,
    /// What was clamped: parameter → `{from, to}`.
    pub clamped: Map<String, Value>,
    /// What it has taken of the rate limits.
    pub tokens: Tokens,
}

/// What the gates keep between calls.
#[derive(Default)]
pub(crate) struct Rules {
    pub rates: Arc<Rates>,
    pub approve_when: Option<crate::condition::Condition>,
}

/// Why a call does not pass.
#[derive(Debug)]
pub(crate) enum Stop {
    Deny(Failure),
    /// A person has to be asked.
    Confirm,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Deny(failure)
    }
}

type Gate = fn(&mut Attempt<'_>) -> Result<(), Stop>;

/// In this order. What a clamp amends is validated again.
const GATES: &[Gate] = &[
    available::pass,
    role::pass,
    mode::pass,
    rate::pass,
    valid::pass,
    clamp::pass,
    valid::pass_again,
    budget::pass,
    confirmed::pass,
];

/// Sends the call through all gates.
pub(crate) fn admit(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    GATES.iter().try_for_each(|gate| gate(attempt))
}

/// The gates that edited arguments pass again: the schema and the clamps.
pub(crate) fn admit_edited(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    [valid::pass as Gate, clamp::pass, valid::pass_again].iter().try_for_each(|gate| gate(attempt))
}

impl Attempt<'_> {
    pub fn spec(&self) -> &ToolSpec {
        &self.prepared.tool.spec
    }

    /// What its conditions speak of.
    pub fn about(&self) -> About<'_> {
        let (session, tool, args) = (self.session, self.spec().tool_id.as_str(), &self.args);
        About { session, tool, args, settings: &self.policy.settings }
    }

    pub fn mode_policy(&self) -> &ModePolicy {
        self.policy.of(self.session.mode)
    }
}

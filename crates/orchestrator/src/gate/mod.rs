//! The gates that a call passes before it is claimed: a list of functions, in order. A refusal is an envelope with a
//! suggestion, and is only recorded in the audit log.

mod auth;
mod available;
mod clamp;
mod confirmed;
pub(crate) mod meter;
mod mode;
mod rate;
pub(crate) mod retrieval;
pub(crate) mod role;
mod usable;
mod valid;

use std::sync::Arc;

use serde_json::{Map, Value};
use toolwright_contract::{Failure, ToolSpec};

use crate::condition::ConditionInput;
use crate::policy::{ModePolicy, Policy};
use crate::prepared::PreparedTool;
use crate::store::SessionRecord;

pub(crate) use rate::{RateTokens, Rates};
pub(crate) use usable::ToolUse;

/// A call as the gates see it.
pub(crate) struct GateInput<'a> {
    pub session: &'a SessionRecord,
    pub prepared: &'a PreparedTool,
    pub policy: &'a Policy,
    pub rules: &'a Rules,
    pub now: i64,
    /// A person has approved this call.
    pub is_approved: bool,
    /// An earlier claim was charged for it.
    pub is_charged: bool,
    /// The arguments that will run: defaults filled in, clamped.
    pub args: &'a mut Value,
    /// Clamped parameters: name → `{from, to}`.
    pub clamped: Map<String, Value>,
    /// The tokens that it has taken from the rate limits.
    pub rate_tokens: RateTokens,
}

/// The state that the gates share between calls.
#[derive(Default)]
pub(crate) struct Rules {
    pub rates: Arc<Rates>,
    pub approve_when: Option<crate::condition::Condition>,
}

/// Why a call may not run.
#[derive(Debug)]
pub(crate) enum Stop {
    Deny(Failure),
    /// It needs approval.
    Confirm,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Deny(failure)
    }
}

pub(crate) type Gate = fn(&mut GateInput<'_>) -> Result<(), Stop>;

/// The gates of a call, in this order. Clamped arguments are validated again.
pub(crate) const OF_CALLS: &[Gate] =
    &[usable::pass, rate::pass, valid::pass, clamp::pass, valid::pass_again, meter::pass, confirmed::pass];

/// The gates of arguments that an approver has edited.
pub(crate) const OF_EDITED_ARGUMENTS: &[Gate] = &[valid::pass, clamp::pass, valid::pass_again];

/// The gates of a task when it begins to run, with the rights of that time. The call that has begun it has passed all.
pub(crate) const OF_TASKS: &[Gate] = &[usable::pass, valid::pass];

/// The gates of a handler's test; see [`CallRequest::host`](crate::CallRequest::host).
pub(crate) const OF_TESTS: &[Gate] = &[valid::pass];

/// Passes gates in order, up to the first that stops the call.
pub(crate) fn pass(gates: &[Gate], input: &mut GateInput<'_>) -> Result<(), Stop> {
    gates.iter().try_for_each(|gate| gate(input))
}

impl GateInput<'_> {
    pub fn spec(&self) -> &ToolSpec {
        &self.prepared.tool.spec
    }

    pub fn condition_input(&self) -> ConditionInput<'_> {
        let (session, tool, args) = (self.session, self.spec().tool_id.as_str(), &*self.args);
        ConditionInput { session, tool, args, settings: &self.policy.settings }
    }

    pub fn mode_policy(&self) -> &ModePolicy {
        self.policy.for_mode(self.session.mode)
    }
}

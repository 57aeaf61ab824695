//! The gates that a call passes before it is claimed: a list of functions, in order. A refusal is an envelope with a
//! suggestion, and is only recorded in the audit log.

mod arguments;
mod auth;
mod availability;
mod clamp;
mod confirmation;
pub(crate) mod meters;
mod mode;
mod rate;
pub(crate) mod retrieval;
pub(crate) mod role;
mod tool_use;

use serde_json::{Map, Value};
use toolwright_contract::{Failure, ToolSpec};

use crate::condition::ConditionInput;
use crate::policy::{ModePolicy, Policy};
use crate::prepared_tool::PreparedTool;
use crate::store::SessionRecord;

pub(crate) use rate::{CallRates, KnownRefusals};
pub(crate) use tool_use::ToolUse;

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
    /// The rate limits that it counts for.
    pub rates: CallRates,
}

/// The state that the gates share between calls.
#[derive(Default)]
pub(crate) struct Rules {
    pub known_refusals: KnownRefusals,
    pub approve_when: Option<crate::condition::Condition>,
}

/// Why a call may not run.
#[derive(Debug)]
pub(crate) enum GateRefusal {
    Deny(Failure),
    /// It needs approval.
    Confirm,
}

impl From<Failure> for GateRefusal {
    fn from(failure: Failure) -> Self {
        Self::Deny(failure)
    }
}

pub(crate) type Gate = fn(&mut GateInput<'_>) -> Result<(), GateRefusal>;

/// The gates of a call, in this order. Clamped arguments are validated again.
pub(crate) const OF_CALLS: &[Gate] = &[
    tool_use::check,
    rate::check,
    arguments::check,
    clamp::check,
    arguments::check_again,
    meters::check,
    confirmation::check,
];

/// The gates of arguments that an approver has edited.
pub(crate) const OF_EDITED_ARGUMENTS: &[Gate] = &[arguments::check, clamp::check, arguments::check_again];

/// The gates of a task when it starts to run, with the principal's present roles. Its starting call passed
/// [`OF_CALLS`].
pub(crate) const OF_TASKS: &[Gate] = &[tool_use::check, arguments::check];

/// The gates of a handler's test; see [`CallRequest::host`](crate::CallRequest::host).
pub(crate) const OF_TESTS: &[Gate] = &[arguments::check];

/// Checks gates in order, up to the first that refuses the call.
pub(crate) fn check(gates: &[Gate], input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
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

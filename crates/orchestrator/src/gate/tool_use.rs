//! Whether a session may use a tool at all: its availability, the principal's roles, the session's mode. The gate of
//! calls, `reg_describe`, and every list, view and prompt ask the same function.

use serde_json::{Map, Value};
use toolwright_contract::{Failure, ToolSpec};

use super::{GateInput, GateRefusal, availability, mode, role};
use crate::condition::{Condition, ConditionInput};
use crate::store::SessionRecord;

/// A tool and the session that would use it.
pub(crate) struct ToolUse<'a> {
    pub spec: &'a ToolSpec,
    /// The compiled condition of `availability`.
    pub available: Option<&'a Condition>,
    pub session: &'a SessionRecord,
    /// The operator's settings for conditions.
    pub settings: &'a Value,
    /// `None` before there is a call: a condition over the arguments is then left to the call.
    pub args: Option<&'a Value>,
}

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    let tool_use = ToolUse {
        spec: input.spec(),
        available: input.prepared.available.as_ref(),
        session: input.session,
        settings: &input.policy.settings,
        args: Some(&*input.args),
    };
    Ok(tool_use.check()?)
}

impl ToolUse<'_> {
    pub fn check(&self) -> Result<(), Failure> {
        availability::check(self)?;
        role::check(self.spec, &self.session.principal)?;
        mode::check(self.spec, self.session.mode)
    }

    /// Whether the condition of `availability` holds. `Err` when it cannot be evaluated.
    pub fn is_available(&self) -> Result<bool, String> {
        let Some(condition) = self.available else { return Ok(true) };
        let no_args = Value::Object(Map::new());
        let args = match self.args {
            Some(args) => args,
            None if condition.uses_args() => return Ok(true),
            None => &no_args,
        };
        let (session, tool, settings) = (self.session, self.spec.tool_id.as_str(), self.settings);
        condition.holds(ConditionInput { session, tool, args, settings })
    }
}

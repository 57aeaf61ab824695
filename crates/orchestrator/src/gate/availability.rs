//! Whether the tool is available to this session. A condition that cannot be evaluated makes it unavailable.

use toolwright_contract::{ErrorKind, Failure};

use super::tool_use::ToolUse;

pub(super) fn check(tool_use: &ToolUse<'_>) -> Result<(), Failure> {
    let id = &tool_use.spec.tool_id;
    match tool_use.is_available() {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(detail) => tracing::warn!(tool = id, "could not evaluate the availability condition: {detail}"),
    }
    let message = format!("The tool `{id}` is not available in this session now.");
    let failure = Failure::new(ErrorKind::Unavailable, message);
    Err(failure.suggest("Continue without it, or tell the user that this is not possible now."))
}

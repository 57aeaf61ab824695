//! Whether the tool is available to this session. A condition that cannot be evaluated makes it unavailable.

use toolwright_contract::{ErrorKind, Failure};

use super::{GateInput, Stop};

pub(super) fn pass(input: &mut GateInput<'_>) -> Result<(), Stop> {
    let Some(condition) = &input.prepared.available else { return Ok(()) };
    match condition.holds(input.condition_input()) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(detail) => tracing::warn!(
            tool = input.spec().tool_id,
            "could not evaluate the availability condition: {detail}"
        ),
    }
    let message = format!("The tool `{}` is not available in this session now.", input.spec().tool_id);
    let failure = Failure::new(ErrorKind::Unavailable, message);
    Err(failure.suggest("Continue without it, or tell the user that this is not possible now.").into())
}

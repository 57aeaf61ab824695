//! Whether the tool is there at all for this session. A condition that cannot be evaluated says no.

use toolwright_contract::{ErrorKind, Failure};

use super::{Attempt, Stop};

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let Some(condition) = &attempt.prepared.available else { return Ok(()) };
    match condition.holds(attempt.about()) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(detail) => tracing::warn!(tool = attempt.spec().tool_id, "availability: {detail}"),
    }
    let message = format!("The tool `{}` is not available now.", attempt.spec().tool_id);
    let failure = Failure::new(ErrorKind::Unavailable, message);
    Err(failure.suggest("Go on without it, or tell the user that this is not possible now.").into())
}

//! Whether the principal has one of the roles that the tool asks for.

use toolwright_contract::{ErrorKind, Failure, ToolSpec};

use super::{Attempt, Stop};
use crate::store::Principal;

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    Ok(check(attempt.spec(), &attempt.session.principal)?)
}

/// Also before a tool is described.
pub(crate) fn check(spec: &ToolSpec, principal: &Principal) -> Result<(), Failure> {
    if spec.admits(&principal.roles) {
        return Ok(());
    }
    let message = format!("The user may not use the tool `{}`.", spec.tool_id);
    let failure = Failure::new(ErrorKind::Auth, message);
    Err(failure.suggest("Tell the user that they lack the permission for this."))
}

//! Whether the principal has one of the roles that the tool requires.

use toolwright_contract::{ErrorKind, Failure, Principal, ToolSpec};

/// Used for approvers, too.
pub(crate) fn check(spec: &ToolSpec, principal: &Principal) -> Result<(), Failure> {
    super::auth::check(spec, principal)?;
    if spec.admits(&principal.roles) {
        return Ok(());
    }
    let message = format!("The user may not use the tool `{}`.", spec.tool_id);
    let failure = Failure::new(ErrorKind::Auth, message);
    Err(failure.suggest("Tell the user that they lack the permission for this."))
}

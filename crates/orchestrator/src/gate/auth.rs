//! Whether the principal has proven who it is, if the tool requires that.

use toolwright_contract::{ErrorKind, Failure, Principal, ToolSpec};

pub(super) fn check(spec: &ToolSpec, principal: &Principal) -> Result<(), Failure> {
    if !spec.requires_auth() || principal.is_authenticated() {
        return Ok(());
    }
    let message = format!("The tool `{}` needs a user who has signed in.", spec.tool_id);
    let failure = Failure::new(ErrorKind::Auth, message);
    Err(failure.suggest("Tell the user to sign in, and continue without the tool."))
}

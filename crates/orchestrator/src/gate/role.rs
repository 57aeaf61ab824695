//! Whether the principal has one of the roles that the tool asks for.

use toolwright_contract::{ErrorKind, Failure};

use super::{Attempt, Stop};

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let wanted = attempt.spec().permissions.as_ref().map_or(&[][..], |permissions| &permissions.roles);
    let roles = &attempt.session.principal.roles;
    if wanted.is_empty() || wanted.iter().any(|role| roles.contains(role)) {
        return Ok(());
    }
    let message = format!("The user may not use the tool `{}`.", attempt.spec().tool_id);
    Err(Failure::new(ErrorKind::Auth, message)
        .suggest("Tell the user that they lack the permission for this.")
        .into())
}

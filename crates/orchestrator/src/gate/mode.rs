//! Whether the tool may be used in the session's mode.

use toolwright_contract::{ErrorKind, Failure, Mode, ToolSpec};

pub(super) fn check(spec: &ToolSpec, mode: Mode) -> Result<(), Failure> {
    if spec.allowed_modes.contains(&mode) {
        return Ok(());
    }
    let allowed: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
    let message = format!("The tool `{}` cannot be used in {mode} mode.", spec.tool_id);
    let suggestion =
        format!("It works only in {} mode: offer to continue there, or do without it.", allowed.join(" or "));
    Err(Failure::new(ErrorKind::ModeRestricted, message).suggest(suggestion))
}

//! Whether the arguments fit the schema; absent ones get their defaults.

use super::{Attempt, Stop};
use crate::validation;

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let prepared = attempt.prepared;
    let checked = prepared.parameters.validate(&mut attempt.args);
    checked.map_err(|errors| validation::refuse(&errors, &prepared.tool.spec.json_schema).into())
}

/// What a clamp has amended has to fit, too.
pub(super) fn pass_again(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    if attempt.clamped.is_empty() { Ok(()) } else { pass(attempt) }
}

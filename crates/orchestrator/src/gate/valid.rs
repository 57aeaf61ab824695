//! Whether the arguments match the schema; absent ones get their defaults.

use super::{GateInput, Stop};
use crate::validation;

pub(super) fn pass(input: &mut GateInput<'_>) -> Result<(), Stop> {
    let prepared = input.prepared;
    let checked = prepared.parameters.validate(&mut input.args);
    checked.map_err(|errors| validation::refuse(&errors, &prepared.tool.spec.json_schema).into())
}

/// Validates clamped arguments.
pub(super) fn pass_again(input: &mut GateInput<'_>) -> Result<(), Stop> {
    if input.clamped.is_empty() { Ok(()) } else { pass(input) }
}

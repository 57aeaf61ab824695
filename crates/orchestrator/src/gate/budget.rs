//! How many retrieval calls a turn may make. This gate only refuses early; the claim counts.

use toolwright_contract::{Category, ErrorKind, Failure, ToolSpec};

use super::{GateInput, Stop};

pub(super) fn pass(input: &mut GateInput<'_>) -> Result<(), Stop> {
    let limit = input.mode_policy().retrieval_calls;
    if !input.has_spent_budget && costs(input.spec()) && input.session.retrievals >= limit {
        return Err(exceeded(limit).into());
    }
    Ok(())
}

/// Whether a call of this tool is counted.
pub(crate) fn costs(spec: &ToolSpec) -> bool {
    spec.category == Category::Retrieval
}

/// The refusal of a call above the limit.
pub(crate) fn exceeded(limit: u32) -> Failure {
    let message = format!("This turn has used up its {limit} retrieval calls.");
    Failure::new(ErrorKind::BudgetExceeded, message)
        .suggest("Answer with what you have found so far, or ask the user to narrow the question.")
}

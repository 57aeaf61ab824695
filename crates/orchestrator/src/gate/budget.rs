//! How many retrieval calls a turn may make. This only tells early; the claim counts.

use toolwright_contract::{Category, ErrorKind, Failure, ToolSpec};

use super::{Attempt, Stop};

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    let limit = attempt.mode_policy().retrieval_calls;
    if !attempt.is_paid && costs(attempt.spec()) && attempt.session.retrievals >= limit {
        return Err(exceeded(limit).into());
    }
    Ok(())
}

/// Whether a call of this tool is paid for by the turn.
pub(crate) fn costs(spec: &ToolSpec) -> bool {
    spec.category == Category::Retrieval
}

/// The refusal of a call that the turn cannot pay for.
pub(crate) fn exceeded(limit: u32) -> Failure {
    let message = format!("This turn has used up its {limit} retrieval calls.");
    Failure::new(ErrorKind::BudgetExceeded, message)
        .suggest("Answer with what you have found so far, or ask the user to narrow the question.")
}

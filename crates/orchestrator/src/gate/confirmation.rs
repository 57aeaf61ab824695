//! Whether the call needs approval. A rule that cannot be evaluated requires it.

use toolwright_contract::Confirmation;

use super::{GateInput, GateRefusal};

pub(super) fn check(input: &mut GateInput<'_>) -> Result<(), GateRefusal> {
    if input.is_approved || !needs_approval(input) || is_remembered(input) || is_approved_by_rule(input) {
        return Ok(());
    }
    Err(GateRefusal::Confirm)
}

fn needs_approval(input: &GateInput<'_>) -> bool {
    match (&input.spec().requires_confirmation, &input.prepared.confirm_when) {
        (Confirmation::Always(always), _) => *always,
        (Confirmation::Rule(_), None) => true,
        (Confirmation::Rule(_), Some(when)) => when.holds(input.condition_input()).unwrap_or_else(|detail| {
            tracing::warn!(tool = input.spec().tool_id, "could not evaluate the confirmation rule: {detail}");
            true
        }),
    }
}

fn is_remembered(input: &GateInput<'_>) -> bool {
    input.policy.may_remember && input.session.remembered.contains(&input.spec().tool_id)
}

/// Whether the operator's rule approves the call. A rule that cannot be evaluated approves nothing.
fn is_approved_by_rule(input: &GateInput<'_>) -> bool {
    let Some(rule) = &input.rules.approve_when else { return false };
    rule.holds(input.condition_input()).unwrap_or_else(|detail| {
        tracing::warn!(tool = input.spec().tool_id, "could not evaluate the auto-approval rule: {detail}");
        false
    })
}

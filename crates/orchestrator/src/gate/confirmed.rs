//! Whether a person has to be asked. A rule that cannot be evaluated asks.

use toolwright_contract::Confirmation;

use super::{Attempt, Stop};

pub(super) fn pass(attempt: &mut Attempt<'_>) -> Result<(), Stop> {
    if attempt.is_approved || !must_ask(attempt) || is_remembered(attempt) || is_waived(attempt) {
        return Ok(());
    }
    Err(Stop::Confirm)
}

fn must_ask(attempt: &Attempt<'_>) -> bool {
    match (&attempt.spec().requires_confirmation, &attempt.prepared.confirm_when) {
        (Confirmation::Always(always), _) => *always,
        (Confirmation::Rule(_), None) => true,
        (Confirmation::Rule(_), Some(when)) => when.holds(attempt.about()).unwrap_or_else(|detail| {
            tracing::warn!(tool = attempt.spec().tool_id, "confirmation: {detail}");
            true
        }),
    }
}

fn is_remembered(attempt: &Attempt<'_>) -> bool {
    attempt.policy.may_remember && attempt.session.remembered.contains(&attempt.spec().tool_id)
}

/// The operator's rule for sessions that nobody watches. One that cannot be evaluated waives nothing.
fn is_waived(attempt: &Attempt<'_>) -> bool {
    let Some(rule) = &attempt.rules.approve_when else { return false };
    rule.holds(attempt.about()).unwrap_or_else(|detail| {
        tracing::warn!(tool = attempt.spec().tool_id, "auto-approval: {detail}");
        false
    })
}
